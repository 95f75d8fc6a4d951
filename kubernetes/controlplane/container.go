package controlplane

import (
	"context"
	"path/filepath"
)

// Container is a process with a root folder and a user of its own: what a
// kubelet makes of a pod's container, without namespaces and limits. Linux
// lets only root start one.
type Container struct {
	// Name is of its log.
	Name string
	// Root is the folder that the process takes for /.
	Root string
	// User is the number of the user, and of the group, that it runs as.
	User int
	// Command is the program, as a path in Root, and its arguments.
	Command []string
	// Env is all of its environment, as NAME=value.
	Env []string
	// Ready says nil once the process serves.
	Ready func(context.Context) error
}

// StartContainer starts a container and waits until it is ready.
func (p *Plane) StartContainer(ctx context.Context, c Container) (*Program, error) {
	program := &Program{
		name: c.Name, path: c.Command[0], args: c.Command[1:], log: p.logFile(c.Name), ready: c.Ready,
		env: append([]string{}, c.Env...), root: c.Root, user: c.User,
	}
	return program, p.run(ctx, program)
}

// file is where the program is for us, outside its root.
func (p *Program) file() string { return filepath.Join(p.root, p.path) }
