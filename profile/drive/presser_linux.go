package drive

import (
	"errors"
	"fmt"
	"math/rand"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// presser holds the clients' connections.
type presser struct {
	load    Load
	value   string
	rng     *rand.Rand
	epoll   int
	clients []client
	events  []unix.EpollEvent
	took    []time.Duration
}

type client struct {
	fd    int
	asked time.Time
	// got is the answer so far.
	got []byte
}

func newPresser(address string, l Load) (_ *presser, err error) {
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, fmt.Errorf("memcached: %w", err)
	}
	p := &presser{load: l, value: strings.Repeat("v", l.Bytes), rng: rand.New(rand.NewSource(l.Seed)), events: make([]unix.EpollEvent, l.Clients)}
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	for i := range l.Clients {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			p.close()
			return nil, fmt.Errorf("socket: %w", err)
		}
		p.clients = append(p.clients, client{fd: fd, got: make([]byte, 0, l.Bytes+256)})
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
		err = errors.Join(err,
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}))
		if err != nil {
			p.close()
			return nil, fmt.Errorf("memcached: connect %s: %w", address, err)
		}
	}
	return p, nil
}

func (p *presser) close() {
	for _, c := range p.clients {
		_ = unix.Close(c.fd)
	}
	_ = unix.Close(p.epoll)
}

// ask sends client i's next request.
func (p *presser) ask(i int) error {
	c := &p.clients[i]
	key := p.rng.Intn(p.load.Keys)
	var request string
	if p.rng.Float64() < p.load.Sets {
		request = setRequest(key, p.value, false)
	} else {
		request = "get key-" + strconv.Itoa(key) + "\r\n"
	}
	c.got, c.asked = c.got[:0], time.Now()
	for rest := []byte(request); len(rest) > 0; {
		n, err := unix.Write(c.fd, rest)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("memcached: %w", err)
		}
		rest = rest[max(0, n):]
	}
	return nil
}

// poll waits for answers, at most 100 ms, and asks again where one is whole.
func (p *presser) poll() error {
	n, err := unix.EpollWait(p.epoll, p.events, 100)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("epoll: %w", err)
	}
	for _, e := range p.events[:max(0, n)] {
		i := int(e.Fd)
		c := &p.clients[i]
		c.got = slices.Grow(c.got, 4096)
		n, err := unix.Read(c.fd, c.got[len(c.got):cap(c.got)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("memcached: %w", err)
		case n == 0:
			return errors.New("memcached: it closed the connection")
		}
		c.got = c.got[:len(c.got)+n]
		whole, err := answered(c.got, len(p.value))
		if err != nil {
			return err
		}
		if !whole {
			continue
		}
		p.took = append(p.took, time.Since(c.asked))
		if err := p.ask(i); err != nil {
			return err
		}
	}
	return nil
}
