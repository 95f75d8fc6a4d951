package drive

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
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
