package profile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/profile"
)

// A workload of one shell loop, measured alone and in twos.
func Example() {
	dir, err := os.MkdirTemp("", "profile")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	suite, err := profile.ParseSuite([]byte(`
name: example
measure: {warm_up: 10ms, window: 100ms, repeats: 2}
workloads:
  - name: ticker
    driver: 'while sleep 0.01; do echo tick; done'
    read:
      rate: {match: ^tick, each: 1}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := profile.OpenLog(filepath.Join(dir, "samples.jsonl"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	session := profile.Session{Suite: suite, Measure: suite.Measure, Log: log, Cache: dir, Work: dir}
	plan := profile.Plan(profile.Colocations(suite.Names(), 2), suite.Measure, 1)
	if err := session.Run(context.Background(), plan); err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range history.Aggregate(log.Samples()) {
		_, known := s.Performance()
		fmt.Println(s.Colocation.Key(), s.Metric, s.Repeats, "repeats, performance known:", known)
	}
	// Output:
	// ticker rate 2 repeats, performance known: true
	// ticker*2 rate 2 repeats, performance known: true
}
