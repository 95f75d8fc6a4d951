package drive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Load is what the clients do: each holds one connection and has one request
// in flight.
type Load struct {
	Clients int
	// Keys is the number of keys, all stored first; Bytes the size of a value.
	Keys, Bytes int
	// Sets is the share of writes among the requests, 0..1.
	Sets float64
	Seed int64
	// Every is the time between two lines of output; 0 means 250 ms.
	Every time.Duration
}

func (l *Load) check() error {
	if l.Clients < 1 || l.Keys < 1 || l.Bytes < 0 || l.Every < 0 {
		return fmt.Errorf("load: %d clients, %d keys, %d bytes, every %s; clients and keys are at least 1, the rest not negative", l.Clients, l.Keys, l.Bytes, l.Every)
	}
	if !(l.Sets >= 0 && l.Sets <= 1) {
		return fmt.Errorf("load: %g sets; within 0..1", l.Sets)
	}
	if l.Every == 0 {
		l.Every = 250 * time.Millisecond
	}
	return nil
}

// Memcached stores the keys, then runs the load over memcached's text
// protocol until ctx ends, and prints one line per interval:
// "rate 51234.5 p50 0.000091 p99 0.000322" (requests/s, seconds).
//
// One thread polls all connections itself, as the load generators of other
// servers do: Go's own network poller would add its delays to the latencies.
func Memcached(ctx context.Context, address string, l Load, out io.Writer) error {
	if err := l.check(); err != nil {
		return err
	}
	if err := fill(ctx, address, l); err != nil {
		return err
	}
	p, err := newPresser(address, l)
	if err != nil {
		return err
	}
	defer p.close()
	for i := range p.clients {
		if err := p.ask(i); err != nil {
			return err
		}
	}
	last := time.Now()
	for ctx.Err() == nil {
		if err := p.poll(); err != nil {
			return err
		}
		now := time.Now()
		if now.Sub(last) < l.Every || len(p.took) == 0 {
			continue
		}
		slices.Sort(p.took)
		at := func(q float64) float64 { return p.took[int(q*float64(len(p.took)-1)+.5)].Seconds() }
		_, err := fmt.Fprintf(out, "rate %.1f p50 %.7f p99 %.7f\n", float64(len(p.took))/now.Sub(last).Seconds(), at(.50), at(.99))
		if err != nil {
			return err
		}
		p.took = p.took[:0]
		last = now
	}
	return nil
}

func setRequest(key int, value string, silent bool) string {
	end := "\r\n"
	if silent {
		end = " noreply\r\n"
	}
	return "set key-" + strconv.Itoa(key) + " 0 0 " + strconv.Itoa(len(value)) + end + value + "\r\n"
}

// fill stores every key.
func fill(ctx context.Context, address string, l Load) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("memcached: %w; is it started?", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	// No answer to any but the last: a round trip a key would take seconds.
	out, value := bufio.NewWriterSize(conn, 64<<10), strings.Repeat("v", l.Bytes)
	for key := range l.Keys {
		// A failed write shows again in the next one, and in Flush.
		_, _ = out.WriteString(setRequest(key, value, key < l.Keys-1))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("memcached: %w", err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return fmt.Errorf("memcached: %w", err)
	}
	if line != "STORED\r\n" {
		return fmt.Errorf("memcached: storing %d keys of %d bytes: it answered %q", l.Keys, l.Bytes, line)
	}
	return nil
}

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

// answered reports whether the bytes are one whole answer to a set or a get of
// a value of that size. A miss is an answer too: memcached may evict.
func answered(got []byte, size int) (bool, error) {
	line, rest, ok := bytes.Cut(got, []byte("\r\n"))
	switch {
	case !ok:
		if len(got) > 512 {
			return false, fmt.Errorf("memcached: no line in its answer %q", got[:64])
		}
		return false, nil
	case string(line) == "STORED" || string(line) == "END":
		return true, nil
	case bytes.HasPrefix(line, []byte("VALUE ")):
		return len(rest) >= size+len("\r\nEND\r\n"), nil
	}
	return false, fmt.Errorf("memcached: it answered %q", line)
}
