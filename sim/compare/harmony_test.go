package compare

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place/harmony"
	"github.com/cotenant/cotenant/place/jobs"
)

func TestTrainedPoliciesComeFromFiles(t *testing.T) {
	spec, err := ParseSpec("harmony@mine.safetensors:max-wait=7200")
	if err != nil {
		t.Fatal(err)
	}
	world := &World{}
	make := func(o PolicyOptions) error {
		_, end, err := spec.New(context.Background(), world, jobs.NewSpeeds(nil, jobs.Options{}), o)
		if err == nil {
			end()
		}
		return err
	}
	if err := make(PolicyOptions{}); err == nil || !strings.Contains(err.Error(), "mine.safetensors was not read") {
		t.Errorf("before Load: %v", err)
	}
	if err := spec.Load(strings.NewReader("{}")); err == nil || !strings.Contains(err.Error(), "harmony@mine.safetensors") {
		t.Errorf("a foreign file: %v", err)
	}
	f, err := harmony.Shipped(history.ScopeDevice)
	if err != nil {
		t.Fatal(err)
	}
	f.MaxWait, f.Moves = 30*time.Minute, harmony.Moves{Fade: 0.5, Horizon: 900, Welcome: 0.25}
	var file bytes.Buffer
	if err := harmony.Save(&file, f); err != nil {
		t.Fatal(err)
	}
	if err := spec.Load(&file); err != nil {
		t.Fatal(err)
	}
	if err := make(PolicyOptions{}); err != nil {
		t.Error(err)
	}
	if err := make(PolicyOptions{Values: map[string]float64{"fade": 1}}); err == nil {
		t.Error("without moves, what they are weighed by is taken")
	}
	if err := make(PolicyOptions{Values: map[string]float64{"fade": 1}, Migrate: time.Second}); err != nil {
		t.Error(err)
	}
	for migrate, want := range map[bool]map[string]float64{
		false: {"max-wait": 1800},
		true:  {"max-wait": 1800, "fade": 0.5, "horizon": 900, "welcome": 0.25},
	} {
		params, err := spec.Params(world, migrate)
		if err != nil || len(params) != len(want) {
			t.Errorf("migrate %v: parameters %v, %v", migrate, params, err)
		}
		for _, p := range params {
			if p.Default != want[p.Key] || p.Low > p.Default || p.High < p.Default {
				t.Errorf("parameter %s is %g by default, in [%g, %g]; want that of the file, %g", p.Key, p.Default, p.Low, p.High, want[p.Key])
			}
		}
	}
}
