package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Scheduler says what to start as a scheduler.
type Scheduler struct {
	// Name is of its log and of its credentials; "" is the program's.
	Name string
	// Program is one of the plane's folder of programs, or a path.
	Program string
	// Configuration is a KubeSchedulerConfiguration as YAML, "" for the
	// defaults. Its kubeconfig is set to the plane's, and the election of a
	// leader is off where it says nothing of it.
	Configuration string
	// User is who it is to the API server; "" is system:kube-scheduler, which
	// has the rights that Kubernetes gives a scheduler and no more.
	User string
	// Sole is one beside which none of its kind runs: no leader is elected,
	// whatever the configuration says. User has no right to a lease of another
	// name than kube-scheduler's.
	Sole bool
	// Args come after those that the plane gives.
	Args []string
}

// Serves are the names by which pods ask for the scheduler.
func (s Scheduler) Serves() ([]string, error) {
	var c struct {
		Profiles []struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"profiles"`
	}
	if err := yaml.Unmarshal([]byte(s.Configuration), &c); err != nil {
		return nil, err
	}
	var names []string
	for _, p := range c.Profiles {
		names = append(names, cmp.Or(p.SchedulerName, corev1.DefaultSchedulerName))
	}
	if len(names) == 0 {
		names = []string{corev1.DefaultSchedulerName}
	}
	return names, nil
}

// RunningScheduler is a scheduler of a plane.
type RunningScheduler struct {
	*Program
	plane   *Plane
	address string
}

// StartScheduler starts a scheduler and waits until it says that it is healthy.
// The plane may have several at once, where their names differ.
func (p *Plane) StartScheduler(ctx context.Context, s Scheduler) (*RunningScheduler, error) {
	if s.Name == "" {
		s.Name = filepath.Base(s.Program)
	}
	if s.User == "" {
		s.User = "system:kube-scheduler"
	}
	who, err := p.ca.issue(s.Name, s.User)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := p.kubeconfig(s.Name, who)
	if err != nil {
		return nil, err
	}
	text, err := s.configuration(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", s.Name, err)
	}
	file := filepath.Join(p.dir, s.Name+".yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	r := &RunningScheduler{plane: p, address: fmt.Sprintf("https://127.0.0.1:%d", ports[0])}
	r.Program = p.program(s.Name, s.Program, p.serves(r.address+"/healthz"),
		slices.Concat([]string{"--config=" + file}, p.serving(ports[0], kubeconfig), p.config.gates(), s.Args)...)
	return r, p.run(ctx, r.Program)
}

// configuration completes what a scheduler is configured with.
func (s Scheduler) configuration(kubeconfig string) ([]byte, error) {
	c := map[string]any{}
	if err := yaml.Unmarshal([]byte(s.Configuration), &c); err != nil {
		return nil, err
	}
	if s.Sole {
		delete(c, "leaderElection")
	}
	for key, value := range map[string]any{
		"apiVersion":     "kubescheduler.config.k8s.io/v1",
		"kind":           "KubeSchedulerConfiguration",
		"leaderElection": map[string]any{"leaderElect": false},
	} {
		if _, given := c[key]; !given {
			c[key] = value
		}
	}
	connection, ok := c["clientConnection"].(map[string]any)
	if !ok {
		if _, given := c["clientConnection"]; given {
			return nil, errors.New("clientConnection is not a map")
		}
		connection = map[string]any{}
	}
	connection["kubeconfig"] = kubeconfig
	c["clientConnection"] = connection
	return yaml.Marshal(c)
}

// MetricsURL is where the scheduler tells of itself to who trusts Plane.CA.
func (r *RunningScheduler) MetricsURL() string { return r.address + "/metrics" }

// Metrics reads what the scheduler says of itself to Prometheus.
func (r *RunningScheduler) Metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	text, err := r.plane.get(ctx, r.MetricsURL())
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", r.name, err)
	}
	return families, nil
}
