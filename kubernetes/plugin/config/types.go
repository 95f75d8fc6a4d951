package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mode is what the plugin may do.
type Mode string

// The modes.
const (
	// Shadow decides, records, and changes nothing.
	Shadow Mode = "shadow"
	// Assist adds a score.
	Assist Mode = "assist"
	// Enforce places by the plan.
	Enforce Mode = "enforce"
	// Ignore leaves the pods of a namespace alone.
	Ignore Mode = "ignore"
)

// CotenantArgs are the plugin's arguments.
type CotenantArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Mode is shadow (the default), assist or enforce.
	Mode Mode `json:"mode,omitempty"`
	// Namespaces says which mode holds in a namespace, ignore included, where it is
	// another one.
	Namespaces map[string]Mode `json:"namespaces,omitempty"`

	// Model is a file by `cotenant fit`. Model or Samples must be given.
	Model File `json:"model,omitempty"`
	// Samples is a file of measurements, which override the model's predictions.
	Samples Samples `json:"samples,omitempty"`
	// Policy places services (and gangs, where there is no JobsPolicy). Default:
	// metis, as it ships.
	Policy Policy `json:"policy,omitempty"`
	// JobsPolicy places gangs: harmony, greedy-wait, ... None by default.
	JobsPolicy *Policy `json:"jobsPolicy,omitempty"`
	// Objective of services: mean (the default), worst, p99, nodes, or a weighted
	// sum.
	Objective string `json:"objective,omitempty"`

	// SlotsPerNode is the most tasks of known workloads on a node; 0, the default,
	// is as many as were measured together: what a model says beyond is a guess.
	SlotsPerNode int `json:"slotsPerNode,omitempty"`
	// Unsure is the standard deviation of a predicted performance from which the
	// model is not trusted. Default .25; 0 trusts it always.
	Unsure *float64 `json:"unsure,omitempty"`
	// Neutral is the score of nodes about which the model is silent, 0 to 100.
	// Default 50.
	Neutral *int64 `json:"neutral,omitempty"`

	// GroupWindow is how long pods of a group are waited for after the last that
	// came, at most four times in all. Default 50ms.
	GroupWindow *metav1.Duration `json:"groupWindow,omitempty"`
	// GangWindow is how long more pods of a gang are waited for after the last that
	// came where nobody says how many go together. Default 5s.
	GangWindow *metav1.Duration `json:"gangWindow,omitempty"`
	// TimeBudget is how long a plan may take: TimeBudget, and TimePerPod for each
	// pod of it. Defaults 200ms and 2ms.
	TimeBudget *metav1.Duration `json:"timeBudget,omitempty"`
	TimePerPod *metav1.Duration `json:"timePerPod,omitempty"`
	// WaitTimeout is how long a gang waits for its last pod, and how long a bind is
	// tried again. Default 1m, at most 15m, which is as long as kube-scheduler lets
	// pods wait.
	WaitTimeout *metav1.Duration `json:"waitTimeout,omitempty"`
	// EvictPartialGangs evicts the bound pods of a gang that has been in part for
	// longer than WaitTimeout. Default false.
	EvictPartialGangs bool `json:"evictPartialGangs,omitempty"`
	// ReloadPeriod is how often the files are looked at. Default 10s.
	ReloadPeriod *metav1.Duration `json:"reloadPeriod,omitempty"`
	// ClockRate is how fast the workloads' time passes by the scheduler's clock:
	// more than 1 where days are replayed in minutes. Policies that go by ages and
	// waiting times see theirs. Default 1.
	ClockRate *float64 `json:"clockRate,omitempty"`
	// Events says which decisions become events: all (the default), that is those
	// of shadow and each pod that is left to the scheduler's own scores; or none.
	// What went as planned is told by the pod's annotation alone.
	Events string `json:"events,omitempty"`
}

// File is a file by its path: from a ConfigMap or another volume.
type File struct {
	Path string `json:"path,omitempty"`
}

// Samples is a file of measurements.
type Samples struct {
	Path string `json:"path,omitempty"`
	// Columns are the workloads of a file that does not name them (.npz).
	Columns []string `json:"columns,omitempty"`
}

// Policy names a policy: `cotenant plan services --policy NAME@FILE:key=value`.
type Policy struct {
	Name   string            `json:"name,omitempty"`
	Path   string            `json:"path,omitempty"`
	Params map[string]string `json:"params,omitempty"`
}
