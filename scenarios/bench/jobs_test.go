package main

import (
	"strings"
	"testing"
)

const fewJobs = `
- name: few
  seeds: 2
  jobs:
    contention: {servers: 2, profile: 40}
    load: 0.9
    jobs: 12
    first_seed: 5
    backfill: true
    kind: linear
    policies: [greedy, "greedy:truth"]
    versus: ["greedy / greedy:truth"]
  checks:
  - metric: "ratio:greedy"
    at_most: MOST
    measured: {mean: 1, spread: 0, date: "2026-11-29"}
    reason: a test
`

func TestJobsAreHeldAgainstBounds(t *testing.T) {
	code, out, log := runSmall(t, strings.ReplaceAll(fewJobs, "MOST", "5"))
	if code != 0 || !strings.Contains(out, "ok") {
		t.Errorf("a bound that holds: exit %d\n%s%s", code, out, log)
	}
	for _, metric := range []string{"bound", "closed:greedy:truth", "jct:greedy / greedy:truth", "wait:spread", "unfinished:greedy"} {
		if !strings.Contains(out, metric) {
			t.Errorf("the output lacks %q:\n%s", metric, out)
		}
	}
	if code, out, _ := runSmall(t, strings.ReplaceAll(fewJobs, "MOST", "0.01")); code != 1 || !strings.Contains(out, "MISSED") {
		t.Errorf("a bound that cannot hold: exit %d\n%s", code, out)
	}
	measured := strings.ReplaceAll(strings.ReplaceAll(fewJobs, "MOST", "5"), "contention: {servers: 2, profile: 40}", "throughputs: no/such.json")
	if code, out, _ := runSmall(t, measured); code != 0 || !strings.Contains(out, "skipped: ") {
		t.Errorf("data that is absent: exit %d\n%s", code, out)
	}
}

func TestJobsThatMakeNoSenseAreRefused(t *testing.T) {
	good := strings.ReplaceAll(fewJobs, "MOST", "5")
	for _, c := range []struct{ from, to, says string }{
		{"    contention: {servers: 2, profile: 40}\n", "", "either throughputs or contention"},
		{"    jobs: 12\n", "", "either a trace or a number of jobs"},
		{`policies: [greedy, "greedy:truth"]`, "policies: []", "no policies"},
		{`"greedy / greedy:truth"`, `"greedy / tetris"`, "not \"A / B\""},
		{`"ratio:greedy"`, `"ratio:tetris"`, "ratio:tetris"},
		{"policies: [greedy,", "policies: [greedier, greedy,", "greedier"},
		{"backfill: true", "backfil: true", "backfil"},
	} {
		code, out, log := runSmall(t, strings.Replace(good, c.from, c.to, 1))
		if code == 0 || !strings.Contains(out+log, c.says) {
			t.Errorf("%q for %q: exit %d, %s%s", c.to, c.from, code, out, log)
		}
	}
}
