package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// recorded is a Prometheus server that has recorded a pod of redis on a node,
// with a pod of nginx on every second day; asked runs before an answer.
func recorded(t *testing.T, asked func(query string)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		asked(query)
		from, _ := strconv.ParseFloat(r.FormValue("start"), 64)
		to, _ := strconv.ParseFloat(r.FormValue("end"), 64)
		step, _ := strconv.ParseFloat(r.FormValue("step"), 64)
		series := func(pod, value string, days ...int) string {
			var pairs []string
			for at := from; at <= to; at += step {
				if day := int(at) / 86400 % 2; len(days) == 0 || days[0] == day {
					pairs = append(pairs, fmt.Sprintf(`[%.0f,%q]`, at, value))
				}
			}
			return fmt.Sprintf(`{"metric":{"namespace":"d","pod":%q,"node":"n","image":%q,"phase":"Running","created_by_kind":"ReplicaSet"},"values":[%s]}`, pod, pod, strings.Join(pairs, ","))
		}
		var result []string
		switch {
		case strings.Contains(query, "kube_pod_info"), strings.Contains(query, "phase"), strings.Contains(query, "container_info"):
			result = []string{series("redis", "1"), series("nginx", "1", 1)}
		case query == "redis_rate":
			result = []string{series("redis", "100", 0), series("redis", "70", 1)}
		case query == "nginx_rate":
			result = []string{series("nginx", "9", 1)}
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, strings.Join(result, ","))
	}))
	t.Cleanup(s.Close)
	return s
}

const twoQueries = "step: 60s\nworkloads:\n- {name: redis, rate: redis_rate}\n- {name: nginx, rate: nginx_rate, alone: 10}\n"

func fourDays(t *testing.T, out, server, config string, more ...string) []string {
	t.Helper()
	return append([]string{
		"import", "prometheus", "--config", config, "--server", server,
		"--from", "2026-01-01T00:00:00Z", "--to", "2026-01-05T00:00:00Z", "--out", out,
	}, more...)
}

func TestImportPrometheus(t *testing.T) {
	server := recorded(t, func(string) {})
	out := filepath.Join(t.TempDir(), "samples.jsonl")
	stdout, stderr, code := cotenant(t, fourDays(t, out, server.URL, file(t, "q.yaml", twoQueries), "-o", "json", "--merge")...)
	if code != 0 {
		t.Fatal(code, stderr)
	}
	var rows []importRow
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil || len(rows) != 1 || *rows[0].Cells != 4 || rows[0].Read < 1000 || rows[0].Skipped == 0 {
		t.Errorf("%s, %v", stdout, err)
	}
	text, err := os.ReadFile(out)
	if err != nil || strings.Count(string(text), "\n") != 4 || !strings.Contains(string(text), `"colocation":{"nginx":1,"redis":1},"workload":"redis","role":"replica","metric":"rate","value":70,"alone":100`) {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := os.Stat(out + ".partial"); err == nil {
		t.Error("what was kept is still there")
	}
	// What it wrote is what the other commands read.
	model := filepath.Join(t.TempDir(), "m")
	if _, stderr, code := cotenant(t, "fit", "--samples", out, "--model", "linear", "--out", model); code != 0 {
		t.Error("fit:", stderr)
	}
}

// An import that is broken off goes on where it was, with the same result.
func TestImportPrometheusGoesOn(t *testing.T) {
	var parts atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	server := recorded(t, func(query string) {
		if strings.Contains(query, "kube_pod_info") && parts.Add(1) == 4 {
			cancel()
		}
	})
	dir := t.TempDir()
	config := file(t, "q.yaml", twoQueries)
	broken, whole := filepath.Join(dir, "broken.jsonl"), filepath.Join(dir, "whole.jsonl")
	_, stderr, code := cotenantWith(t, ctx, "", fourDays(t, broken, server.URL, config)...)
	if code != exitFailed || !strings.Contains(stderr, "interrupted; ") {
		t.Fatal(code, stderr)
	}
	if _, err := os.Stat(broken); err == nil {
		t.Error("something was written")
	}
	kept, err := os.ReadFile(broken + ".partial")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken+".partial", append(kept, `{"samples":[{"torn`...), 0o600); err != nil {
		t.Fatal(err)
	}
	before := parts.Load()
	_, stderr, code = cotenant(t, fourDays(t, broken, server.URL, config)...)
	if code != 0 || !strings.Contains(stderr, "going on with") {
		t.Fatal(code, stderr)
	}
	again := parts.Load() - before
	if _, stderr, code = cotenant(t, fourDays(t, whole, server.URL, config)...); code != 0 {
		t.Fatal(code, stderr)
	}
	if all := parts.Load() - before - again; again >= all {
		t.Errorf("%d parts were read again, of %d", again, all)
	}
	a, errA := os.ReadFile(broken)
	b, errB := os.ReadFile(whole)
	if errA != nil || errB != nil || string(a) != string(b) || len(a) == 0 {
		t.Errorf("an import that went on differs from one in one go (%d and %d bytes), %v, %v", len(a), len(b), errA, errB)
	}
}

func TestImportPrometheusWrongUse(t *testing.T) {
	config := file(t, "q.yaml", twoQueries)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	nothing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","warnings":["half of it"],"data":{"resultType":"matrix","result":[]}}`)
	}))
	defer nothing.Close()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{}, exitWrongUse, "--config is missing"},
		{[]string{"--config", config}, exitWrongUse, "server: missing"},
		{[]string{"--config", config, "--server", "here"}, exitWrongUse, `"here" is no address`},
		{[]string{"--config", config, "--server", down.URL, "--since", "soon"}, exitWrongUse, `"soon" is no duration`},
		{[]string{"--config", config, "--server", down.URL, "--since", "1m"}, exitWrongUse, "no whole window"},
		{[]string{"--config", config, "--server", down.URL, "--since", "1h", "--from", "2026-01-01T00:00:00Z"}, exitWrongUse, "keep one"},
		{[]string{"--config", config, "--server", down.URL, "--window", "90s"}, exitWrongUse, "no multiple of step"},
		{[]string{"--config", config, "--server", nothing.URL, "--since", "1h"}, exitFailed, "kube-state-metrics said nothing"},
		{[]string{"--config", config, "--server", nothing.URL, "--since", "1h", "--strict"}, exitFailed, "half of it"},
		{[]string{"--config", file(t, "bad.yaml", "workloads: [{name: a, rat: x}]")}, exitFailed, `line 1: unknown field "rat"`},
	} {
		_, stderr, code := cotenant(t, append([]string{"import", "prometheus"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit %d, %s; want %d and %q", c.args, code, stderr, c.code, c.want)
		}
	}
}
