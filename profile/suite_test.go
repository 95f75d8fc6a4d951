package profile

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
)

// minimal is a suite that is right; tests break one thing in it.
const minimal = `name: test
measure:
  window: 100ms
workloads:
  - name: counter
    limits: {cpu: 500m, memory: 64Mi}
    ready:
      line: started
    server: 'echo started; while :; do echo tick; done'
    read:
      rate:
        match: ^tick
        each: 1
`

func TestParseSuiteKeepsDefaults(t *testing.T) {
	s, err := ParseSuite([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Measure, (Measure{WarmUp: time.Second, Window: 100 * time.Millisecond, Repeats: 3, Passes: 1, AloneEvery: 8}); got != want {
		t.Errorf("measure %+v, want %+v", got, want)
	}
	w := s.Workloads[0]
	if w.Role != cluster.Replica || w.Read.From != FromServer || w.Ready.Timeout != 30*time.Second {
		t.Errorf("role %q, from %q, timeout %s", w.Role, w.Read.From, w.Ready.Timeout)
	}
	if w.Server[0] != "/bin/sh" || len(w.Server) != 3 {
		t.Errorf("server %q: a string runs in a shell", w.Server)
	}
}

func TestParseSuiteNamesLineAndField(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"name: counter", "nam: counter", "line 5: field nam not found"},
		{"window: 100ms", "window: 100", "line 3: cannot unmarshal"},
		{"window: 100ms", "window: -1s", "line 3: measure.window: -1s"},
		{"name: counter", "name: Counter", `line 5: workloads[0].name: "Counter"`},
		{"name: counter", "name: a+b", `line 5: workloads[0].name: "a+b"`},
		{"cpu: 500m", "cpu: lots", `line 6: workloads[0].limits.cpu: "lots" is not a positive quantity`},
		{"memory: 64Mi", "memory: -1", `line 6: workloads[0].limits.memory: "-1"`},
		{"line: started", "line: '('", "line 8: workloads[0].ready.line: error parsing regexp"},
		{"echo started", "echo {{prot}}", "line 9: workloads[0].server: unknown placeholder {{prot}}; known are port,"},
		{"    server: 'echo started; while :; do echo tick; done'\n", "", "workloads[0].server: empty"},
		{"match: ^tick", "match: ''", "line 12: workloads[0].read.rate.match: empty"},
		{"match: ^tick", "match: '['", "line 12: workloads[0].read.rate.match: error parsing regexp"},
		{"        each: 1\n", "", "line 12: workloads[0].read.rate.match: needs one group"},
		{"each: 1", "each: -1", "workloads[0].read.rate: scale and each"},
		{"each: 1", "each: .nan", "workloads[0].read.rate: scale and each"},
		{"    read:\n", "    read:\n      from: both\n", `line 11: workloads[0].read.from: "both"`},
		{"    read:\n", "    read:\n      from: driver\n", "line 11: workloads[0].read.from: driver, but the workload has none"},
		{"    read:\n", "    role: boss\n    read:\n", `line 10: workloads[0].role: "boss"`},
		{"    read:\n", "    span: far\n    read:\n", `line 10: workloads[0].span: "far"`},
		{"    read:\n", "    driver: []\n    read:\n", "line 10: empty command"},
		{minimal, "name: x\nworkloads: []\n", "line 2: workloads: empty"},
		{minimal, minimal + strings.SplitAfter(minimal, "workloads:\n")[1], `line 14: workloads[1].name: "counter" is used twice`},
	} {
		text := strings.Replace(minimal, c.from, c.to, 1)
		_, err := ParseSuite([]byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q instead of %q: error %v, want %q", c.to, c.from, err, c.want)
		}
	}
}

func FuzzParseSuite(f *testing.F) {
	f.Add([]byte(minimal))
	if text, err := os.ReadFile("suite/suite.yaml"); err == nil {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSuite(data)
		if err != nil {
			return
		}
		for i := range s.Workloads {
			w := &s.Workloads[i]
			if w.Name == "" || len(w.Server)+len(w.Driver) == 0 || w.Read.Rate.re == nil {
				t.Errorf("accepted %+v", w)
			}
		}
	})
}

func TestCommandsExpandPlaceholders(t *testing.T) {
	got := Command{"-p{{port}}", "{{ dir }}/x", "{}"}.expand(map[string]string{"port": "7", "dir": "/d"})
	if fmt.Sprint(got) != "[-p7 /d/x {}]" {
		t.Errorf("%q", got)
	}
}

func TestCheckNamesThePackage(t *testing.T) {
	s, err := ParseSuite([]byte(strings.Replace(minimal, "    limits:", "    needs:\n      - {program: no-such-program, package: no-such-package}\n      - {program: sh}\n    limits:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Check([]string{"counter"})
	if err == nil || !strings.Contains(err.Error(), "workload counter needs no-such-program; apt-get install no-such-package") || strings.Contains(err.Error(), "needs sh") {
		t.Errorf("%v", err)
	}
	if err := s.Check([]string{"other"}); err == nil || !strings.Contains(err.Error(), `"other" is not in the suite; it has counter`) {
		t.Errorf("%v", err)
	}
}
