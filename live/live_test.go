package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cotenant/cotenant/history/formats"
	"github.com/cotenant/cotenant/live"
)

// kubeconfig writes one with the contexts here (the current one) and spare.
func kubeconfig(t testing.TB, server, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
clusters:
- name: c
  cluster: {server: %q%s}
contexts:
- name: here
  context: {cluster: c, user: u}
- name: spare
  context: {cluster: c, user: u}
users:
- name: u
  user: {token: secret}
`, server, more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// apiServer lists n pods, page by page.
type apiServer struct {
	n      int
	fail   func(r *http.Request) (code int, message string)
	asked  []string
	tokens []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.URL.String())
	s.tokens = append(s.tokens, r.Header.Get("Authorization"))
	if s.fail != nil {
		if code, message := s.fail(r); code != 0 {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","message":%q}`, message)
			return
		}
	}
	if r.URL.Path == "/api/v1/nodes" {
		fmt.Fprint(w, `{"kind":"NodeList","metadata":{},"items":[{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"8","pods":"110"}}}]}`)
		return
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	var items []string
	for i := from; i < min(s.n, from+limit); i++ {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"p%d","namespace":"d"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"redis"}]},"status":{"phase":"Running"}}`, i))
	}
	next := ""
	if from+limit < s.n {
		next = strconv.Itoa(from + limit)
	}
	fmt.Fprintf(w, `{"kind":"PodList","metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
}

func serve(t testing.TB, s *apiServer) *live.Cluster {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	c, err := live.Open(kubeconfig(t, server.URL, ", insecure-skip-tls-verify: true"), "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAListOfManyPagesIsWhole(t *testing.T) {
	s := &apiServer{n: 1203}
	c := serve(t, s)
	var text bytes.Buffer
	if err := c.List(t.Context(), &text, live.Nodes, live.Pods); err != nil {
		t.Fatal(err)
	}
	read, _, err := formats.ReadKubernetes(&text, formats.Options{Name: c.Name()})
	if err != nil || len(read.Nodes) != 1 || len(read.Running) != 1203 {
		t.Errorf("%d nodes and %d pods, %v; want 1 and 1203", len(read.Nodes), len(read.Running), err)
	}
	if len(s.asked) != 4 {
		t.Errorf("asked %d times: %q; want once for the nodes and three times for the pods", len(s.asked), s.asked)
	}
	if s.tokens[0] != "Bearer secret" {
		t.Errorf("the kubeconfig's token was not sent: %q", s.tokens[0])
	}
}

// A list whose rest the API server has forgotten begins anew: none of its
// objects is there twice.
func TestAForgottenRestBeginsAnew(t *testing.T) {
	gone := false
	s := &apiServer{n: 900, fail: func(r *http.Request) (int, string) {
		if r.URL.Query().Get("continue") != "" && !gone {
			gone = true
			return http.StatusGone, "too old"
		}
		return 0, ""
	}}
	var text bytes.Buffer
	if err := serve(t, s).List(t.Context(), &text, live.Pods); err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text.Bytes(), &list); err != nil || len(list.Items) != 900 {
		t.Errorf("%d pods, %v; want 900", len(list.Items), err)
	}
}

func TestABusyServerIsAskedAgain(t *testing.T) {
	busy := true
	s := &apiServer{n: 1, fail: func(*http.Request) (int, string) {
		if busy {
			busy = false
			return http.StatusTooManyRequests, "too many requests"
		}
		return 0, ""
	}}
	if err := serve(t, s).List(t.Context(), &bytes.Buffer{}, live.Pods); err != nil {
		t.Error(err)
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	refuse := func(code int, message string) *apiServer {
		return &apiServer{fail: func(*http.Request) (int, string) { return code, message }}
	}
	for _, c := range []struct {
		s    *apiServer
		want []string
	}{
		{refuse(403, `pods is forbidden: User "eve" cannot list resource "pods"`), []string{"context here at https://", "/api/v1/pods", "forbidden", `User "eve"`, "grant the verb list"}},
		{refuse(401, "Unauthorized"), []string{"unauthorized", "log in again"}},
		{refuse(404, ""), []string{"not found", "is that address an API server?"}},
		{refuse(500, "etcd is away"), []string{"internal server error", "etcd is away"}},
	} {
		err := serve(t, c.s).List(t.Context(), &bytes.Buffer{}, live.Pods)
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v: does not say %q", err, w)
			}
		}
	}
	// What one can do without is left out.
	var text bytes.Buffer
	if err := serve(t, refuse(403, "no")).List(t.Context(), &text, live.PodEvents); err != nil || text.Len() > 0 {
		t.Errorf("events: %q, %v; want nothing", text.String(), err)
	}
}

func TestUnreachedServersAreToldApart(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	secure := httptest.NewTLSServer(&apiServer{})
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshake that fails is the test
	defer secure.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer page.Close()
	for _, c := range []struct {
		server string
		want   string
	}{
		{down.URL, "nothing listens there"},
		{secure.URL, "certificate is not trusted"},
		{page.URL, "is that address an API server?"},
	} {
		cluster, err := live.Open(kubeconfig(t, c.server, ""), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := cluster.List(t.Context(), &bytes.Buffer{}, live.Pods); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.server, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cluster, err := live.Open(kubeconfig(t, down.URL, ""), "spare")
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.List(ctx, &bytes.Buffer{}, live.Pods); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestBadKubeconfigs(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("kind: Config\nclusters: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, context, want string }{
		{kubeconfig(t, "http://127.0.0.1:1", ""), "there", `no such context: "there"; it has: here, spare`},
		{filepath.Join(t.TempDir(), "none"), "", "there is no kubeconfig"},
		{bad, "", "kubeconfig " + bad},
		{kubeconfig(t, "http://127.0.0.1:1", `, certificate-authority: "/nowhere/ca.crt"`), "", "/nowhere/ca.crt"},
	} {
		if _, err := live.Open(c.file, c.context); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %q: %v; want %q", c.file, c.context, err, c.want)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if _, err := live.Open("", ""); err == nil || !strings.Contains(err.Error(), "set KUBECONFIG") {
		t.Errorf("no kubeconfig at all: %v", err)
	}
}

func TestIsKubeconfig(t *testing.T) {
	for text, want := range map[string]bool{
		"apiVersion: v1\nkind: Config\n":                    true,
		"kind: \"Config\" \r\n":                             true,
		`{"apiVersion":"v1","kind":"Config","clusters":[]}`: true,
		`{"apiVersion": "v1", "kind": "Config"}`:            true,
		"kind: ConfigMap\n":                                 false,
		`{"kind":"List","items":[{"kind":"Config"}]}`:       false,
		"kind: List\nitems:\n- kind: Config\n":              false,
		"":                                                  false,
		"kind: Config\n\tx: [":                              false,
		`{"nodes":[{"name":"a"}]}`:                          false,
	} {
		if got := live.IsKubeconfig([]byte(text)); got != want {
			t.Errorf("%q: %v; want %v", text, got, want)
		}
	}
}

func FuzzIsKubeconfig(f *testing.F) {
	for _, s := range []string{"kind: Config", `{"kind":"Config"}`, "kind: Config\n---\nkind: Pod", "? kind: Config\n: &a *a"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, content []byte) {
		live.IsKubeconfig(content) // must not panic
	})
}

func ExampleOpen() {
	server := httptest.NewServer(&apiServer{n: 3})
	defer server.Close()
	file := filepath.Join(os.TempDir(), fmt.Sprintf("cotenant-example-%d", os.Getpid()))
	defer os.Remove(file)
	err := os.WriteFile(file, []byte(`{"kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": "`+server.URL+`"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c"}}]}`), 0o600)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := live.Open(file, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	var text bytes.Buffer
	if err := c.List(context.Background(), &text, live.Nodes, live.Pods); err != nil {
		fmt.Println(err)
		return
	}
	cluster, _, err := formats.ReadKubernetes(&text, formats.Options{Name: c.Name()})
	fmt.Println(len(cluster.Nodes), len(cluster.Running), err)
	// Output: 1 3 <nil>
}
