package external_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/external"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/interference"
	"github.com/cotenant/cotenant/place"
)

// model knows a and b alone and in pairs: a suffers beside a, b from nothing.
func model(t testing.TB) interference.Model {
	t.Helper()
	sample := func(c cluster.Colocation, w string, v float64) history.Sample {
		return history.Sample{Colocation: c, Workload: w, Metric: history.Rate, Value: v, Alone: 1}
	}
	m, err := interference.Fit(interference.KindTable, []history.Sample{
		sample(cluster.Colocation{"a": 1}, "a", 1),
		sample(cluster.Colocation{"b": 1}, "b", 1),
		sample(cluster.Colocation{"a": 2}, "a", 0.5),
		sample(cluster.Colocation{"b": 2}, "b", 0.9),
		sample(cluster.Colocation{"a": 1, "b": 1}, "a", 0.95),
		sample(cluster.Colocation{"a": 1, "b": 1}, "b", 0.98),
	}, interference.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func request(t testing.TB) place.Request {
	t.Helper()
	s, err := cluster.NewSnapshot(cluster.Spec{Nodes: cluster.Nodes("", 2, 0, 2)})
	if err != nil {
		t.Fatal(err)
	}
	g := cluster.Group{Name: "batch"}
	for _, id := range []string{"a/0", "a/1", "b/0", "b/1"} {
		g.Tasks = append(g.Tasks, cluster.Task{ID: cluster.TaskID(id), Workload: id[:1]})
	}
	return place.Request{View: s, Pending: []cluster.Group{g}, Rand: rand.New(rand.NewPCG(1, 2))}
}

func python(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is absent: ", err)
	}
	return path
}

// program is a Python program whose body handles each request line.
func program(t testing.TB, body string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.py")
	text := "import json, os, sys, time\n" +
		"def say(x):\n    print(json.dumps(x), flush=True)\n" +
		"def ask(**q):\n    say({'predict': q}); return json.loads(sys.stdin.readline())['estimates']\n" +
		"for line in sys.stdin:\n    request = json.loads(line)\n    tasks = [t['id'] for g in request['pending'] for t in g['tasks']]\n" +
		"    " + strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n    ") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{python(t), file}
}

func TestTheShippedExamplePlansAsWellAsCanBe(t *testing.T) {
	m, req := model(t), request(t)
	p := external.New(t.Context(), []string{python(t), filepath.Join("..", "examples", "policy.py")}, external.Options{Model: m})
	defer p.Close()
	d, err := p.Place(req)
	if err != nil {
		t.Fatal(err)
	}
	e, err := place.Evaluate(req, d, m)
	if err != nil {
		t.Fatal(err)
	}
	if want := (0.95 + 0.98) / 2; e.Value != want {
		t.Errorf("mean performance %g; want %g, an a with a b on each node", e.Value, want)
	}
	if d.Why["b/0"].Words == "" {
		t.Error("no reason for b/0")
	}
}

func TestTheProgramIsStartedOnceAndReused(t *testing.T) {
	p := external.New(t.Context(), program(t, `
count = globals().get('count', 0) + 1
say({'id': request['id'], 'hold': [{'task': i, 'why': 'try %d of %d' % (count, os.getpid())} for i in tasks]})
`), external.Options{})
	defer p.Close()
	var whys []string
	for range 3 {
		d, err := p.Place(request(t))
		if err != nil {
			t.Fatal(err)
		}
		whys = append(whys, d.Hold[0].Why)
	}
	pid := strings.Fields(whys[0])[3]
	if want := []string{"try 1 of " + pid, "try 2 of " + pid, "try 3 of " + pid}; strings.Join(whys, ";") != strings.Join(want, ";") {
		t.Errorf("got %q; want %q", whys, want)
	}
}

func TestTheSameSeedGivesTheProgramTheSameBytes(t *testing.T) {
	dump := program(t, `
open(sys.argv[1], 'a').write(line)
say({'id': request['id'], 'hold': [{'task': i, 'why': 'no'} for i in tasks]})
`)
	var got [2][]byte
	for i := range got {
		file := filepath.Join(t.TempDir(), "lines")
		p := external.New(t.Context(), append(dump[:2:2], file), external.Options{Model: model(t)})
		if _, err := p.Place(request(t)); err != nil {
			t.Fatal(err)
		}
		p.Close()
		got[i], _ = os.ReadFile(file)
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Errorf("two requests differ:\n%s%s", got[0], got[1])
	}
	golden := filepath.Join("testdata", "request.json")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, got[0], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got[0], want) {
		t.Errorf("the request is part of the protocol (rewrite with UPDATE_GOLDEN=1):\ngot  %swant %s", got[0], want)
	}
}

func TestPredictionsOnRequest(t *testing.T) {
	p := external.New(t.Context(), program(t, `
e = ask(colocations=[{'a': 1, 'b': 1}, {'a': 2, 'c': 1}]) + ask(metric='p99', colocations=[{'a': 1}])
say({'id': request['id'], 'hold': [{'task': i, 'why': json.dumps(e, sort_keys=True)} for i in tasks]})
`), external.Options{Model: model(t)})
	defer p.Close()
	d, err := p.Place(request(t))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"a": {"measured": true, "std": 0, "value": 0.95}, "b": {"measured": true, "std": 0, "value": 0.98}}, {"a": null, "c": null}, {"a": null}]`
	if d.Hold[0].Why != want {
		t.Errorf("estimates %s; want %s", d.Hold[0].Why, want)
	}
}

func TestWhatGoesWrongSaysSo(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string // in the error
	}{
		{"crash", `sys.stderr.write('out of luck\n'); sys.exit(3)`, []string{"ended without deciding", "exit status 3", "out of luck"}},
		{"exception", `raise KeyError('nodes')`, []string{"exit status 1", "KeyError: 'nodes'"}},
		{"ends", `sys.exit(0)`, []string{"exit status 0", "answer every request"}},
		{"leaves a child", `import subprocess; subprocess.Popen(['sleep', '60']); sys.exit(0)`, []string{"exit status 0", "kept its output open", "killed 1s later", "without &"}},
		{"ends within a line", `sys.stdout.write('{"id": 1, "bi'); sys.exit(0)`, []string{"middle of a line", `{\"id\": 1, \"bi`}},
		{"not JSON", `print('hello', flush=True)`, []string{"not an answer in JSON", "hello"}},
		{"two values", `print('{"id": 1} {"id": 2}', flush=True)`, []string{"more than one JSON value"}},
		{"misspelt field", `say({'id': request['id'], 'binds': []})`, []string{`unknown field "binds"`}},
		{"wrong kind", `say({'id': request['id'], 'bind': 'all'})`, []string{"not an answer", "bind"}},
		{"no id", `say({'bind': []})`, []string{"no id", "1"}},
		{"wrong id", `say({'id': 7, 'bind': []})`, []string{"id 7", "has 1"}},
		{"refuses", `say({'id': request['id'], 'error': 'too many zones'})`, []string{"refused: too many zones"}},
		{"oversize line", `print('x' * 70000, flush=True)`, []string{"line of more than 65536 bytes"}},
		{"never answers", `time.sleep(60)`, []string{"waited", "for a decision and killed", "--time-limit"}},
		{"asks for a strange metric", `ask(metric='p95', colocations=[])`, []string{`"p95"`, "rate, p50, p99"}},
		{"asks for a bad count", `ask(colocations=[{'a': 0}])`, []string{"0 tasks of", "colocations[0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			argv := program(t, c.body)
			o := external.Options{Model: model(t), Timeout: 5 * time.Second, MaxLine: 1 << 16}
			if c.name == "never answers" {
				o.Timeout = 300 * time.Millisecond
			}
			p := external.New(t.Context(), argv, o)
			defer p.Close()
			_, err := p.Place(request(t))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range append(c.want, argv[1]) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
			if c.name == "refuses" {
				return
			}
			if _, err := p.Place(request(t)); err == nil || !strings.Contains(err.Error(), "broken by an earlier error") {
				t.Errorf("a broken policy went on: %v", err)
			}
		})
	}
}

func TestARefusalIsNotTheEnd(t *testing.T) {
	p := external.New(t.Context(), program(t, `
if request['id'] == 1: say({'id': 1, 'error': 'not yet'})
else: say({'id': 2, 'hold': [{'task': i, 'why': 'full'} for i in tasks]})
`), external.Options{})
	defer p.Close()
	if _, err := p.Place(request(t)); err == nil {
		t.Fatal("no error")
	}
	if d, err := p.Place(request(t)); err != nil || len(d.Hold) != 4 {
		t.Errorf("after a refusal: %v, %v", d, err)
	}
}

func TestAProgramThatCannotStart(t *testing.T) {
	for _, argv := range [][]string{nil, {"./no-such-program"}, {filepath.Join("testdata", "request.json")}} {
		p := external.New(t.Context(), argv, external.Options{})
		if _, err := p.Place(request(t)); err == nil {
			t.Errorf("%q started", argv)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An invalid decision is the judge's to find: here as for every policy.
func TestDecisionsAreJudgedByEvaluate(t *testing.T) {
	m, req := model(t), request(t)
	for name, c := range map[string]struct{ body, want string }{
		"unknown node": {`say({'id': request['id'], 'bind': [{'task': i, 'node': 'mars'} for i in tasks]})`, `"mars"`},
		"unknown task": {`say({'id': request['id'], 'hold': [{'task': 'z/9', 'why': ''}]})`, `"z/9"`},
		"too many":     {`say({'id': request['id'], 'bind': [{'task': i, 'node': 'node-0'} for i in tasks]})`, "no free slot"},
		"forgotten":    {`say({'id': request['id']})`, "neither binds nor holds"},
	} {
		t.Run(name, func(t *testing.T) {
			p := external.New(t.Context(), program(t, c.body), external.Options{})
			defer p.Close()
			d, err := p.Place(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = place.Evaluate(req, d, m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v; want one with %q", err, c.want)
			}
		})
	}
}

func TestNothingOutlivesItsPolicy(t *testing.T) {
	// The program starts one of its own, which ignores that its input ends.
	body := `
import subprocess
child = subprocess.Popen(['sleep', '300'])
say({'id': request['id'], 'hold': [{'task': i, 'why': '%d %d' % (os.getpid(), child.pid)} for i in tasks]})
time.sleep(300)
`
	for _, how := range []string{"close", "cancel"} {
		t.Run(how, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := external.New(ctx, program(t, body), external.Options{Timeout: 20 * time.Second})
			defer p.Close()
			d, err := p.Place(request(t))
			if err != nil {
				t.Fatal(err)
			}
			if how == "cancel" {
				cancel()
				begin := time.Now()
				if _, err := p.Place(request(t)); err == nil || !strings.Contains(err.Error(), "stopped") {
					t.Errorf("error %v; want one that it was stopped", err)
				}
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("stopping took %s", took)
				}
			} else {
				p.Close()
			}
			for _, pid := range strings.Fields(d.Hold[0].Why) {
				n, _ := strconv.Atoi(pid)
				if !gone(n) {
					t.Errorf("process %d is still there", n)
				}
			}
		})
	}
}

// gone waits for a killed process to go: init reaps orphans in its own time.
func gone(pid int) bool {
	for range 100 {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
