package harmony

import (
	"bytes"
	_ "embed" // the policies that ship
	"fmt"
	"time"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place/jobs"
)

// One was trained where jobs share devices, one where parameter servers and
// workers share nodes.
var (
	//go:embed device.safetensors
	shippedDevice []byte
	//go:embed node.safetensors
	shippedNode []byte
)

// Shipped is the policy that comes with the program for what the tasks of a
// co-location share. Each call reads it anew: the caller may change what it
// gets.
func Shipped(scope history.Scope) (*File, error) {
	file := shippedNode
	if scope == history.ScopeDevice {
		file = shippedDevice
	}
	f, err := Load(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("the policy that ships: %w", err)
	}
	return f, nil
}

// forever stands for waiting without end where a number of seconds is wanted.
const forever = 1e8

// Params lists what can be tuned of a policy beside its network, with the
// file's own numbers as defaults; changes adds what it needs to move or to scale
// running jobs.
func (f *File) Params(changes bool) []jobs.Param {
	wait := f.MaxWait.Seconds()
	if f.MaxWait == 0 {
		wait = forever
	}
	params := []jobs.Param{{
		Key: "max-wait", Meaning: "seconds of waiting after which a gang is placed whatever it gains",
		Low: 60, High: forever, Default: wait, Log: true,
	}}
	if !changes {
		return params
	}
	m := f.moves()
	return append(params, jobs.Param{
		Key: "fade", Meaning: "how fast a job's progress loses weight with its age, as the power of 1 + hours, where it is weighed whether to move",
		Low: 0, High: 2, Default: m.Fade,
	}, jobs.Param{
		Key: "horizon", Meaning: "seconds over which what a move gains is counted against its cost",
		Low: 60, High: 1e6, Default: m.Horizon, Log: true,
	}, jobs.Param{
		Key: "welcome", Meaning: "the gain in weighted progress from which a job that waits is let in by moving others",
		Low: 0, High: 1.2, Default: m.Welcome,
	})
}

func (f *File) moves() Moves {
	if f.Moves == (Moves{}) {
		return DefaultMoves
	}
	return f.Moves
}

// Policy makes the policy of a file. s.Values, by the keys of Params, stand
// above the file's own numbers; it is an error where one is unknown or out of
// its range, or where s.Speeds are missing.
func (f *File) Policy(s jobs.Settings) (*Policy, error) {
	if s.Speeds == nil {
		return nil, fmt.Errorf("policy harmony: needs Speeds; make them with jobs.NewSpeeds")
	}
	if s.Migrate < 0 {
		return nil, fmt.Errorf("policy harmony: migrate %s is negative", s.Migrate)
	}
	if s.Scale < 0 {
		return nil, fmt.Errorf("policy harmony: scale %s is negative", s.Scale)
	}
	if err := jobs.CheckValues(f.Params(s.Migrate > 0 || s.Scale > 0), s.Values); err != nil {
		return nil, fmt.Errorf("policy harmony: %w", err)
	}
	o := Options{MaxWait: f.MaxWait, Migrate: s.Migrate, Scale: s.Scale, Moves: f.moves(), Threshold: f.Threshold, Explain: s.Explain}
	if v, ok := s.Values["max-wait"]; ok {
		o.MaxWait = time.Duration(v * float64(time.Second))
	}
	for key, to := range map[string]*float64{"fade": &o.Moves.Fade, "horizon": &o.Moves.Horizon, "welcome": &o.Moves.Welcome} {
		if v, ok := s.Values[key]; ok {
			*to = v
		}
	}
	return New(f.Net, s.Speeds, o), nil
}
