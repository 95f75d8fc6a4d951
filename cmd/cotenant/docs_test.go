package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/cluster"
)

// Every example of docs/constraints.md is a file that is read.
func TestTheDocumentedConstraintsAreRead(t *testing.T) {
	text, err := os.ReadFile("../../docs/constraints.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 7 {
		t.Fatalf("%d examples; want 7 or more", len(blocks))
	}
	for i, b := range blocks {
		path := file(t, "example.yaml", b[1])
		if strings.Contains(b[1], "workloads:") {
			if _, err := readWorkloads(&inputs{}, path); err != nil {
				t.Errorf("example %d: %v", i, err)
			}
			continue
		}
		c, err := readConstraints(&inputs{}, path)
		if err != nil {
			t.Errorf("example %d: %v", i, err)
			continue
		}
		if _, err := cluster.NewSnapshot(cluster.Spec{Constraints: c}); err != nil {
			t.Errorf("example %d: %v", i, err)
		}
	}
}
