package profile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cotenant/cotenant/cluster"
)

// Suite is a set of workloads and the defaults of measuring them.
type Suite struct {
	Name      string     `yaml:"name"`
	About     string     `yaml:"about"`
	Measure   Measure    `yaml:"measure"`
	Workloads []Workload `yaml:"workloads"`
	// Dir is the folder of the suite's file: {{suite}} in commands.
	Dir string `yaml:"-"`
}

// Measure says how long and how often.
type Measure struct {
	// WarmUp passes between the first reading of every task and the first window.
	WarmUp time.Duration `yaml:"warm_up"`
	// Window is the length of one repeat.
	Window time.Duration `yaml:"window"`
	// Repeats is how many windows follow each other in one start of a co-location.
	Repeats int `yaml:"repeats"`
	// Passes is how many times the whole plan is gone through, with new starts.
	Passes int `yaml:"passes"`
	// AloneEvery puts one alone-run after that many co-locations; 0 means none
	// beyond those that the plan lists.
	AloneEvery int `yaml:"alone_every"`
}

// Workload is how one program is started, driven and read.
type Workload struct {
	Name  string `yaml:"name"`
	About string `yaml:"about"`
	// Needs lists the programs that must be installed.
	Needs []Need `yaml:"needs"`
	// Role, Job, Span and BatchSize are copied into the samples.
	Role      cluster.Role `yaml:"role"`
	Job       string       `yaml:"job"`
	Span      cluster.Span `yaml:"span"`
	BatchSize int          `yaml:"batch_size"`
	// Limits bound one task: server and driver together.
	Limits Limits `yaml:"limits"`
	// User runs every command of the workload, where we are root.
	User        string            `yaml:"user"`
	Environment map[string]string `yaml:"environment"`
	// Prepare runs once in {{cache}}, which every instance then shares.
	Prepare Command `yaml:"prepare"`
	// Setup runs once per instance in {{dir}}, before the server.
	Setup Command `yaml:"setup"`
	// Server is started first, those of all tasks at once. A program that needs
	// no server is a driver alone.
	Server Command `yaml:"server"`
	Ready  Ready   `yaml:"ready"`
	// Load runs once the server is ready.
	Load Command `yaml:"load"`
	// Driver presses on the server until it is killed. It starts when the servers
	// of all tasks are ready. Without one the server is its own driver.
	Driver Command `yaml:"driver"`
	Read   Read    `yaml:"read"`
}

// Need is a program (or a Python module of /usr/bin/python3) and the Debian
// package that holds it.
type Need struct {
	Program string `yaml:"program"`
	Python  string `yaml:"python"`
	Package string `yaml:"package"`
}

// Limits are Kubernetes quantities: cpu in cores ("500m"), memory in bytes
// ("512Mi"). Empty means no limit.
type Limits struct {
	CPU    string `yaml:"cpu"`
	Memory string `yaml:"memory"`
}

// Ready says when a server can be driven: when its port accepts connections,
// or when it prints a line that matches.
type Ready struct {
	TCP     string        `yaml:"tcp"`
	Line    string        `yaml:"line"`
	Timeout time.Duration `yaml:"timeout"`
	line    *regexp.Regexp
}

// Command is an argument vector; in YAML a list, or one string for sh -c.
type Command []string

// UnmarshalYAML accepts both forms.
func (c *Command) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*c = Command{"/bin/sh", "-c", n.Value}
		return nil
	}
	var argv []string
	if err := n.Decode(&argv); err != nil {
		return err
	}
	if len(argv) == 0 {
		return fmt.Errorf("line %d: empty command; give a program and its arguments, or leave the field out", n.Line)
	}
	*c = argv
	return nil
}

// LoadSuite reads a suite and checks all of it.
func LoadSuite(path string) (*Suite, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("suite: %w", err)
	}
	s, err := ParseSuite(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Dir, err = filepath.Abs(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return s, nil
}

// ParseSuite reads a suite's YAML. Errors name line, field and value.
func ParseSuite(data []byte) (*Suite, error) {
	s := &Suite{Measure: Measure{WarmUp: time.Second, Window: 1500 * time.Millisecond, Repeats: 3, Passes: 1, AloneEvery: 8}}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(s); err != nil {
		return nil, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("line %d: %w", lineOf(&root, err.path...), err)
	}
	return s, nil
}

// fieldError is a wrong field: the path leads to it through the YAML.
type fieldError struct {
	path []any
	text string
}

func (e *fieldError) Error() string {
	var b strings.Builder
	for _, p := range e.path {
		switch p := p.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", p)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(p)
		}
	}
	return b.String() + ": " + e.text
}

// lineOf follows a path as far as the document has it.
func lineOf(n *yaml.Node, path ...any) int {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	line := n.Line
	for _, p := range path {
		var next *yaml.Node
		switch p := p.(type) {
		case int:
			if n.Kind == yaml.SequenceNode && p < len(n.Content) {
				next = n.Content[p]
			}
		case string:
			for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == p {
					next, line = n.Content[i+1], n.Content[i].Line
				}
			}
		}
		if next == nil {
			return line
		}
		if _, ok := p.(int); ok {
			line = next.Line
		}
		n = next
	}
	return line
}

func (s *Suite) check() *fieldError {
	wrong := func(format string, args []any, path ...any) *fieldError {
		return &fieldError{path: path, text: fmt.Sprintf(format, args...)}
	}
	m := s.Measure
	switch {
	case m.WarmUp < 0:
		return wrong("%s is negative", []any{m.WarmUp}, "measure", "warm_up")
	case m.Window <= 0:
		return wrong("%s; must be positive, such as 1500ms", []any{m.Window}, "measure", "window")
	case m.Repeats < 1:
		return wrong("%d; at least 1", []any{m.Repeats}, "measure", "repeats")
	case m.Passes < 1:
		return wrong("%d; at least 1", []any{m.Passes}, "measure", "passes")
	case m.AloneEvery < 0:
		return wrong("%d is negative", []any{m.AloneEvery}, "measure", "alone_every")
	case len(s.Workloads) == 0:
		return wrong("empty; list at least one workload", nil, "workloads")
	}
	seen := map[string]bool{}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if e := w.check(); e != nil {
			e.path = append([]any{"workloads", i}, e.path...)
			return e
		}
		if seen[w.Name] {
			return wrong("%q is used twice", []any{w.Name}, "workloads", i, "name")
		}
		seen[w.Name] = true
	}
	return nil
}

var nameShape = regexp.MustCompile(`^[a-z0-9]([a-z0-9._/-]*[a-z0-9])?$`)

func (w *Workload) check() *fieldError {
	wrong := func(field, format string, args ...any) *fieldError {
		path := []any{}
		for p := range strings.SplitSeq(field, ".") {
			path = append(path, p)
		}
		return &fieldError{path: path, text: fmt.Sprintf(format, args...)}
	}
	if !nameShape.MatchString(w.Name) {
		return wrong("name", "%q; lower-case letters, digits, and . _ - / inside", w.Name)
	}
	if w.Role == "" {
		w.Role = cluster.Replica
	}
	if w.Role != cluster.Replica && w.Role != cluster.Worker && w.Role != cluster.ParameterServer {
		return wrong("role", "%q is none of replica, worker, ps", w.Role)
	}
	switch w.Span {
	case "", cluster.SpanDevice, cluster.SpanNode, cluster.SpanRack, cluster.SpanApart:
	default:
		return wrong("span", "%q is none of device, node, rack, apart", w.Span)
	}
	if w.BatchSize < 0 {
		return wrong("batch_size", "%d is negative", w.BatchSize)
	}
	for _, l := range []struct{ field, text string }{{"limits.cpu", w.Limits.CPU}, {"limits.memory", w.Limits.Memory}} {
		if l.text == "" {
			continue
		}
		q, err := resource.ParseQuantity(l.text)
		if err != nil || q.Sign() <= 0 {
			return wrong(l.field, "%q is not a positive quantity such as 500m or 512Mi", l.text)
		}
	}
	if len(w.Server) == 0 && len(w.Driver) == 0 {
		return wrong("server", "empty, and so is driver; say how the workload is started")
	}
	if len(w.Server) == 0 && (w.Ready.TCP != "" || w.Ready.Line != "" || len(w.Load) > 0) {
		return wrong("server", "empty, but ready or load wait for one")
	}
	if w.Ready.Timeout == 0 {
		w.Ready.Timeout = 30 * time.Second
	}
	if w.Ready.Timeout < 0 {
		return wrong("ready.timeout", "%s is negative", w.Ready.Timeout)
	}
	if w.Ready.Line != "" {
		re, err := regexp.Compile(w.Ready.Line)
		if err != nil {
			return wrong("ready.line", "%v", err)
		}
		w.Ready.line = re
	}
	for _, c := range []struct {
		field string
		argv  []string
	}{
		{"prepare", w.Prepare},
		{"setup", w.Setup},
		{"server", w.Server},
		{"load", w.Load},
		{"driver", w.Driver},
		{"ready.tcp", []string{w.Ready.TCP}},
	} {
		for _, a := range c.argv {
			if name, ok := unknownPlaceholder(a); ok {
				return wrong(c.field, "unknown placeholder {{%s}}; known are %s", name, strings.Join(placeholders, ", "))
			}
		}
	}
	for i, n := range w.Needs {
		if n.Program == "" && n.Python == "" {
			return &fieldError{path: []any{"needs", i}, text: "names neither program nor python"}
		}
	}
	if w.Read.From == "" {
		w.Read.From = FromDriver
		if len(w.Driver) == 0 {
			w.Read.From = FromServer
		}
	}
	if w.Read.From != FromDriver && w.Read.From != FromServer {
		return wrong("read.from", "%q is none of driver, server", w.Read.From)
	}
	if w.Read.From == FromDriver && len(w.Driver) == 0 {
		return wrong("read.from", "driver, but the workload has none")
	}
	if e := w.Read.compile(); e != nil {
		e.path = append([]any{"read"}, e.path...)
		return e
	}
	return nil
}

// Workload finds a workload by name; the error lists those there are.
func (s *Suite) Workload(name string) (*Workload, error) {
	for i := range s.Workloads {
		if s.Workloads[i].Name == name {
			return &s.Workloads[i], nil
		}
	}
	return nil, fmt.Errorf("workload %q is not in the suite; it has %s", name, strings.Join(s.Names(), ", "))
}

// Names lists the workloads in the suite's order.
func (s *Suite) Names() []string {
	names := make([]string, len(s.Workloads))
	for i := range s.Workloads {
		names[i] = s.Workloads[i].Name
	}
	return names
}

// placeholders that commands may use as {{name}}.
var placeholders = []string{"port", "port2", "dir", "cache", "suite", "instance", "cotenant"}

var placeholderShape = regexp.MustCompile(`\{\{\s*([^{}]*?)\s*\}\}`)

func unknownPlaceholder(s string) (string, bool) {
	for _, m := range placeholderShape.FindAllStringSubmatch(s, -1) {
		known := false
		for _, p := range placeholders {
			known = known || p == m[1]
		}
		if !known {
			return m[1], true
		}
	}
	return "", false
}

// expand fills the placeholders of every argument.
func (c Command) expand(values map[string]string) []string {
	out := make([]string, len(c))
	for i, a := range c {
		out[i] = expand(a, values)
	}
	return out
}

func expand(s string, values map[string]string) string {
	return placeholderShape.ReplaceAllStringFunc(s, func(m string) string {
		return values[placeholderShape.FindStringSubmatch(m)[1]]
	})
}
