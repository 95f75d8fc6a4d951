package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// A kubeconfig of nobody's API server: a scheduler makes a client of it before
// it looks at its plugins, and then asks nothing.
const nowhere = `{apiVersion: v1, kind: Config, current-context: none, contexts: [{name: none, context: {cluster: none, user: none}}],
  clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: none, user: {}}]}`

// refusal is the last line of a program of Kubernetes that could not start.
var refusal = regexp.MustCompile(`"command failed" err=("(?:[^"\\]|\\.)*")`)

// Check tells, before a plane is started, what would keep StartScheduler from
// starting a scheduler on it: that its program is not there, or what the program
// itself says of its configuration, down to the arguments of its plugins.
func (c Config) Check(ctx context.Context, s Scheduler) error {
	if c.Binaries == "" {
		found, err := Binaries()
		if err != nil {
			return err
		}
		c.Binaries = found
	}
	program := c.find(s.Program)
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("no program %s; give a path, or a name in %s, where make kubernetes-build puts kube-scheduler and cotenant-scheduler", program, c.Binaries)
	}
	if s.Configuration == "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "cotenant-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kubeconfig, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "scheduler.yaml")
	text, err := s.configuration(kubeconfig)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(kubeconfig, []byte(nowhere), 0o600), os.WriteFile(file, text, 0o600)); err != nil {
		return err
	}
	// With this flag it ends once it has made its profiles. One that does not
	// know the flag, or how to end, can't be asked.
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	args := slices.Concat([]string{"--config=" + file, "--write-config-to=" + filepath.Join(dir, "complete.yaml"), "--secure-port=0"}, c.gates(), s.Args)
	said, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if m := refusal.FindSubmatch(said); err != nil && m != nil {
		why, err := strconv.Unquote(string(m[1]))
		if err != nil {
			return err
		}
		return errors.New(why)
	}
	return nil
}
