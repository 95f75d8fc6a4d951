package drive

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fake speaks enough of memcached's text protocol, in pieces of a few bytes so
// that answers arrive torn. It counts what was asked.
type fake struct {
	net.Listener
	sets, gets atomic.Int64
	answer     string // instead of STORED, if not empty
}

func startFake(t *testing.T, answer string) *fake {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{Listener: l, answer: answer}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(conn)
		}
	}()
	return f
}

func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var key string
		var size int
		out := ""
		if n, _ := fmt.Sscanf(line, "set %s 0 0 %d", &key, &size); n == 2 {
			f.sets.Add(1)
			if _, err := in.Discard(size + 2); err != nil {
				return
			}
			if !strings.Contains(line, "noreply") {
				out = "STORED\r\n"
				if f.answer != "" {
					out = f.answer
				}
			}
		} else {
			f.gets.Add(1)
			key = strings.TrimSpace(strings.TrimPrefix(line, "get "))
			out = "VALUE " + key + " 0 30\r\n" + strings.Repeat("v", 30) + "\r\nEND\r\n"
		}
		for len(out) > 0 {
			n := min(7, len(out))
			if _, err := io.WriteString(conn, out[:n]); err != nil {
				return
			}
			out = out[n:]
		}
	}
}

func TestMemcachedReportsRateAndLatency(t *testing.T) {
	f := startFake(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	l := Load{Clients: 3, Keys: 20, Bytes: 30, Sets: .3, Every: 50 * time.Millisecond}
	if err := Memcached(ctx, f.Addr().String(), l, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 2 {
		t.Fatalf("printed %q", out.String())
	}
	for _, line := range lines {
		var rate, p50, p99 float64
		if _, err := fmt.Sscanf(line, "rate %g p50 %g p99 %g", &rate, &p50, &p99); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if rate <= 0 || p50 <= 0 || p50 > p99 || p99 > .3 {
			t.Errorf("%q", line)
		}
	}
	sets, gets := f.sets.Load()-20, f.gets.Load()
	if share := float64(sets) / float64(sets+gets); sets+gets > 200 && (share < .2 || share > .4) {
		t.Errorf("%d sets and %d gets, want 30 %% sets", sets, gets)
	}
}

func TestMemcachedFailsLoudly(t *testing.T) {
	full := startFake(t, "SERVER_ERROR out of memory storing object\r\n")
	err := Memcached(t.Context(), full.Addr().String(), Load{Clients: 1, Keys: 2, Bytes: 30}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("%v", err)
	}
	for _, l := range []Load{{}, {Clients: 1, Keys: 1, Sets: 2}, {Clients: 1, Keys: 1, Bytes: -1}} {
		if err := Memcached(t.Context(), full.Addr().String(), l, io.Discard); err == nil || !strings.Contains(err.Error(), "load: ") {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

func FuzzAnswered(f *testing.F) {
	for _, s := range []string{"STORED\r\n", "END\r\n", "VALUE k 0 3\r\nabc\r\nEND\r\n", "VALUE k 0 3\r\nab", "ERROR\r\n"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, got []byte, size int) {
		whole, err := answered(got, max(0, size%4096))
		if whole && (err != nil || !bytes.Contains(got, []byte("\r\n"))) {
			t.Errorf("%q: %v, %v", got, whole, err)
		}
	})
}
