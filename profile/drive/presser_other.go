//go:build !linux

package drive

import (
	"errors"
	"time"
)

// presser is Linux's: it polls with epoll.
type presser struct {
	clients []struct{}
	took    []time.Duration
}

func newPresser(string, Load) (*presser, error) {
	return nil, errors.New("memcached: the load generator runs on Linux only")
}

func (p *presser) close()        {}
func (p *presser) ask(int) error { return nil }
func (p *presser) poll() error   { return nil }
