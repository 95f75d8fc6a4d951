package config

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	defaults "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
)

// One type serves inside and outside: it is registered as both versions, in the
// scheme of configurations and in that by which their arguments are converted.
func init() {
	for _, s := range []*runtime.Scheme{scheme.Scheme, defaults.GetPluginArgConversionScheme()} {
		s.AddKnownTypes(configv1.SchemeGroupVersion, &CotenantArgs{})
		s.AddKnownTypes(config.SchemeGroupVersion, &CotenantArgs{})
		s.AddTypeDefaultingFunc(&CotenantArgs{}, func(o any) { SetDefaults(o.(*CotenantArgs)) })
	}
	setProfileDefaults(scheme.Scheme)
}

// SetDefaults fills in what is not given.
func SetDefaults(a *CotenantArgs) {
	if a.Mode == "" {
		a.Mode = Shadow
	}
	if a.Policy.Name == "" {
		a.Policy.Name = "metis"
	}
	if a.Objective == "" {
		a.Objective = "mean"
	}
	if a.Events == "" {
		a.Events = "all"
	}
	or(&a.Unsure, .25)
	or(&a.Neutral, 50)
	or(&a.ClockRate, 1)
	or(&a.GroupWindow, metav1.Duration{Duration: 50 * time.Millisecond})
	or(&a.GangWindow, metav1.Duration{Duration: 5 * time.Second})
	or(&a.TimeBudget, metav1.Duration{Duration: 200 * time.Millisecond})
	or(&a.TimePerPod, metav1.Duration{Duration: 2 * time.Millisecond})
	or(&a.WaitTimeout, metav1.Duration{Duration: time.Minute})
	or(&a.ReloadPeriod, metav1.Duration{Duration: 10 * time.Second})
}

func or[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// ModeOf is the mode of a namespace.
func (a *CotenantArgs) ModeOf(namespace string) Mode {
	if m, ok := a.Namespaces[namespace]; ok {
		return m
	}
	return a.Mode
}

// Has reports whether a mode holds in some namespace.
func (a *CotenantArgs) Has(m Mode) bool {
	return a.Mode == m || slices.Contains(slices.Collect(maps.Values(a.Namespaces)), m)
}

// Most is the mode that may do most among those of all namespaces.
func (a *CotenantArgs) Most() Mode {
	order := []Mode{Ignore, Shadow, Assist, Enforce}
	most := a.Mode
	for _, m := range a.Namespaces {
		if slices.Index(order, m) > slices.Index(order, most) {
			most = m
		}
	}
	return most
}

// DeepCopyObject implements runtime.Object.
func (a *CotenantArgs) DeepCopyObject() runtime.Object {
	if a == nil {
		return nil
	}
	out := *a
	out.Namespaces = maps.Clone(a.Namespaces)
	out.Samples.Columns = slices.Clone(a.Samples.Columns)
	out.Policy.Params = maps.Clone(a.Policy.Params)
	if a.JobsPolicy != nil {
		jobs := *a.JobsPolicy
		jobs.Params = maps.Clone(jobs.Params)
		out.JobsPolicy = &jobs
	}
	again(&out.Unsure)
	again(&out.Neutral)
	again(&out.ClockRate)
	for _, d := range []**metav1.Duration{&out.GroupWindow, &out.GangWindow, &out.TimeBudget, &out.TimePerPod, &out.WaitTimeout, &out.ReloadPeriod} {
		again(d)
	}
	return &out
}

func again[T any](p **T) {
	if *p != nil {
		value := **p
		*p = &value
	}
}
