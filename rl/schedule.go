package rl

import "math"

// Schedule is a number that changes over the updates: From at update 0, To at
// update Steps and after. Being a function of the update alone, it needs no
// state of its own.
type Schedule struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Steps int     `json:"steps,omitempty"`
	// Geometric goes down by a constant factor instead of a constant step; both
	// ends must be positive.
	Geometric bool `json:"geometric,omitempty"`
}

// Constant is a Schedule that never changes.
func Constant(v float64) Schedule { return Schedule{From: v, To: v} }

// At is the number at an update, counted from 0.
func (s Schedule) At(update int) float64 {
	if update >= s.Steps {
		return s.To
	}
	share := float64(update) / float64(s.Steps)
	if s.Geometric && s.From > 0 && s.To > 0 {
		return s.From * math.Pow(s.To/s.From, share)
	}
	return s.From + (s.To-s.From)*share
}
