package prometheus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cotenant/cotenant/internal/misfit"
)

// Config says what to ask, and of whom.
type Config struct {
	// Server is the address, such as http://127.0.0.1:9090; a path in front of
	// /api/v1 belongs to it.
	Server string `yaml:"server"`
	// TokenFile holds a bearer token, CAFile the certificates of who signed the
	// server's; Headers are sent along, such as X-Scope-OrgID.
	TokenFile string            `yaml:"token_file"`
	CAFile    string            `yaml:"ca_file"`
	Headers   map[string]string `yaml:"headers"`
	// Step is the time between two values; Window how long a sample lasts; Settle
	// how long a node's pods must have been the same before.
	Step   Duration `yaml:"step"`
	Window Duration `yaml:"window"`
	Settle Duration `yaml:"settle"`
	// Variation is the most that a window's values may vary, as their standard
	// deviation over their mean; 0 is any.
	Variation *float64 `yaml:"variation"`
	// Background are regular expressions of namespace/pod: pods that are left out
	// of co-locations. Those of DaemonSets and of the nodes themselves are, anyway.
	Background []string `yaml:"background"`
	// ClassLabels are the labels of nodes that name their class, the first that is
	// there wins.
	ClassLabels []string   `yaml:"class_labels"`
	Workloads   []Workload `yaml:"workloads"`

	background []*regexp.Regexp
}

// Workload is how to measure a workload.
type Workload struct {
	Name string `yaml:"name"`
	// Rate and P99 are PromQL queries with one series a pod: its rate, higher is
	// better, and its latency in seconds. P99 may be missing.
	Rate string `yaml:"rate"`
	P99  string `yaml:"p99"`
	// Pods is a regular expression of namespace/pod: which pods are of the
	// workload. Without, those with the label cotenant.dev/workload, or an image, of
	// its name.
	Pods string `yaml:"pods"`
	// Alone is its rate alone on a node, by class; "" is every class. Without, it is
	// the rate where it happened to be alone.
	Alone Rates `yaml:"alone"`

	pods *regexp.Regexp
}

// Rates are numbers by class. In YAML, a number alone is that of every class.
type Rates map[string]float64

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *Rates) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		var one float64
		if n.Decode(&one) != nil {
			return fmt.Errorf("line %d: alone: %q is no rate; give a number, or one by class", n.Line, n.Value)
		}
		*r = Rates{"": one}
		return nil
	}
	var by map[string]float64
	if n.Decode(&by) != nil {
		return fmt.Errorf("line %d: alone: not all of it are rates by class, such as {c5: 120, m5: 90}", n.Line)
	}
	*r = by
	return nil
}

// Duration is a time.Duration, in YAML as Go and Prometheus write it: 30s, 5m.
type Duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: a list or a mapping, where a duration such as 30s belongs", n.Line)
	}
	v, err := ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*d = Duration(v)
	return nil
}

var days = regexp.MustCompile(`^([0-9]{1,5})([dw])$`)

// ParseDuration reads what time.ParseDuration does, and 7d and 2w as Prometheus
// has them.
func ParseDuration(text string) (time.Duration, error) {
	if m := days.FindStringSubmatch(text); m != nil {
		n := 0
		for _, c := range m[1] {
			n = 10*n + int(c-'0')
		}
		if m[2] == "w" {
			n *= 7
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration such as 30s, 5m, 2h or 7d", text)
	}
	return d, nil
}

// What holds where the configuration does not say.
const (
	defaultStep      = 30 * time.Second
	defaultWindow    = 5 * time.Minute
	defaultSettle    = 5 * time.Minute
	defaultVariation = 0.5
)

var defaultClassLabels = []string{"cotenant.dev/class", "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}

// ReadConfig reads and checks a configuration, YAML or JSON; name is that of the
// file, for errors.
func ReadConfig(text []byte, name string) (Config, error) {
	var c Config
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		if errors.Is(err, io.EOF) {
			return c, fmt.Errorf("%s: it is empty; name the workloads and their queries (docs/formats.md, \"Prometheus\")", name)
		}
		return c, fmt.Errorf("%s: %w; docs/formats.md (\"Prometheus\") has an example", name, misfit.YAML(text, err))
	}
	var more yaml.Node
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return c, fmt.Errorf("%s: it holds more than one document; keep one", name)
	}
	if err := c.Check(); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// Check completes the configuration with what holds by default, and reports the
// first field that cannot be right.
func (c *Config) Check() error {
	for _, d := range []struct {
		name  string
		value *Duration
		or    time.Duration
		least time.Duration
	}{
		{"step", &c.Step, defaultStep, time.Second},
		{"window", &c.Window, defaultWindow, time.Second},
		{"settle", &c.Settle, defaultSettle, time.Second},
	} {
		if *d.value == 0 {
			*d.value = Duration(d.or)
		}
		if v := time.Duration(*d.value); v < d.least || v > 7*24*time.Hour || v%time.Second != 0 {
			return fmt.Errorf("%s: %s; give whole seconds, at most 7 days", d.name, v)
		}
	}
	if c.Window%c.Step != 0 || c.Window < 2*c.Step {
		return fmt.Errorf("window: %s is no multiple of step %s, at least two of them", time.Duration(c.Window), time.Duration(c.Step))
	}
	if c.Settle < c.Step {
		return fmt.Errorf("settle: %s is less than step %s", time.Duration(c.Settle), time.Duration(c.Step))
	}
	if c.Variation == nil {
		v := defaultVariation
		c.Variation = &v
	}
	if !(*c.Variation >= 0) {
		return fmt.Errorf("variation: %g; give a share such as 0.3, or 0 for any", *c.Variation)
	}
	if c.Server != "" {
		if u, err := url.Parse(c.Server); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("server: %q is no address such as http://127.0.0.1:9090", c.Server)
		}
	}
	if c.ClassLabels == nil {
		c.ClassLabels = defaultClassLabels
	}
	c.background = nil
	for i, text := range c.Background {
		e, err := whole(text)
		if err != nil {
			return fmt.Errorf("background[%d]: %w", i, err)
		}
		c.background = append(c.background, e)
	}
	if len(c.Workloads) == 0 {
		return errors.New("workloads: none; name at least one, with a query for its rate")
	}
	seen := map[string]bool{}
	for i := range c.Workloads {
		if err := c.Workloads[i].check(seen); err != nil {
			return fmt.Errorf("workloads[%d]%s: %w", i, quoted(c.Workloads[i].Name), err)
		}
	}
	return nil
}

func quoted(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (%.40s)", name)
}

func (w *Workload) check(seen map[string]bool) (err error) {
	switch {
	case w.Name == "":
		return errors.New("name: missing")
	case strings.ContainsAny(w.Name, "+*") || strings.TrimSpace(w.Name) != w.Name:
		return fmt.Errorf("name: %q holds +, * or spaces at an end; rename the workload", w.Name)
	case seen[w.Name]:
		return errors.New("name: it comes twice")
	case strings.TrimSpace(w.Rate) == "":
		return errors.New("rate: missing; give a PromQL query with one series a pod")
	}
	seen[w.Name] = true
	for _, class := range sorted(w.Alone) {
		if v := w.Alone[class]; !(v > 0) || v > notAvailable {
			return fmt.Errorf("alone: %g on class %q; give a rate above 0, in the unit of the query", v, class)
		}
	}
	if w.Pods != "" {
		if w.pods, err = whole(w.Pods); err != nil {
			return fmt.Errorf("pods: %w", err)
		}
	}
	return nil
}

// whole is an expression that matches whole names, as PromQL has it.
func whole(text string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(text); err != nil {
		return nil, fmt.Errorf("%q is no regular expression: %s", text, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return regexp.Compile("^(?:" + text + ")$")
}
