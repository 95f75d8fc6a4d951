package config

import (
	"maps"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/cotenant/cotenant/place"
)

// MaxWait is as long as kube-scheduler lets a pod wait to be permitted.
const MaxWait = 15 * time.Minute

// Validate reports all that is wrong with the arguments; defaults must be set.
func Validate(path *field.Path, a *CotenantArgs) error {
	var errs field.ErrorList
	modes := []Mode{Shadow, Assist, Enforce}
	if !slices.Contains(modes, a.Mode) {
		errs = append(errs, field.NotSupported(path.Child("mode"), a.Mode, modes))
	}
	for _, ns := range slices.Sorted(maps.Keys(a.Namespaces)) {
		if m := a.Namespaces[ns]; m != Ignore && !slices.Contains(modes, m) {
			errs = append(errs, field.NotSupported(path.Child("namespaces").Key(ns), m, slices.Concat(modes, []Mode{Ignore})))
		}
	}
	if a.Model.Path == "" && a.Samples.Path == "" {
		errs = append(errs, field.Required(path.Child("model", "path"), "or samples.path: without a model every workload is unknown"))
	}
	if a.JobsPolicy != nil && a.JobsPolicy.Name == "" {
		errs = append(errs, field.Required(path.Child("jobsPolicy", "name"), "name a policy, or leave jobsPolicy out"))
	}
	if _, err := place.ParseObjective(a.Objective); err != nil {
		errs = append(errs, field.Invalid(path.Child("objective"), a.Objective, err.Error()))
	}
	if a.SlotsPerNode < 0 {
		errs = append(errs, field.Invalid(path.Child("slotsPerNode"), a.SlotsPerNode, "must be 0 or more"))
	}
	if u := *a.Unsure; !(u >= 0) || math.IsInf(u, 0) {
		errs = append(errs, field.Invalid(path.Child("unsure"), u, "must be a finite number of 0 or more"))
	}
	if n := *a.Neutral; n < 0 || n > 100 {
		errs = append(errs, field.Invalid(path.Child("neutral"), n, "must be 0 to 100"))
	}
	if r := *a.ClockRate; !(r > 0 && r <= 1e6) {
		errs = append(errs, field.Invalid(path.Child("clockRate"), r, "must be more than 0 and at most 1e6"))
	}
	if !slices.Contains([]string{"all", "none"}, a.Events) {
		errs = append(errs, field.NotSupported(path.Child("events"), a.Events, []string{"all", "none"}))
	}
	for _, d := range []struct {
		name     string
		value    *metav1.Duration
		low, max time.Duration
	}{
		{"groupWindow", a.GroupWindow, 0, time.Minute},
		{"gangWindow", a.GangWindow, 0, MaxWait},
		{"timeBudget", a.TimeBudget, time.Millisecond, time.Minute},
		{"timePerPod", a.TimePerPod, 0, time.Second},
		{"waitTimeout", a.WaitTimeout, time.Second, MaxWait},
		{"reloadPeriod", a.ReloadPeriod, 100 * time.Millisecond, 24 * time.Hour},
	} {
		if d.value.Duration < d.low || d.value.Duration > d.max {
			errs = append(errs, field.Invalid(path.Child(d.name), d.value.Duration.String(), "must be "+d.low.String()+" to "+d.max.String()))
		}
	}
	return errs.ToAggregate()
}
