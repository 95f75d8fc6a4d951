package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// plainEvery is how often a progress that is not on a terminal speaks.
const plainEvery = 10 * time.Second

// progress tells on standard error how far work is: a bar with the time left
// on a terminal, a plain line now and then elsewhere. A work that is quick
// enough says nothing elsewhere. Safe for concurrent use.
type progress struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	what     string
	total    int
	done     int
	start    time.Time
	last     time.Time
	drawn    bool
	now      func() time.Time
}

func newProgress(out io.Writer, what string, total int) *progress {
	p := &progress{out: out, terminal: isTerminal(out), what: what, total: total, now: time.Now}
	p.start = p.now()
	p.last = p.start
	return p
}

func isTerminal(w io.Writer) bool {
	if g, ok := w.(*gate); ok {
		w = g.w
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// at says that done steps are done and what comes next.
func (p *progress) at(done int, next string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = done
	now := p.now()
	if p.terminal {
		if p.drawn && now.Sub(p.last) < 50*time.Millisecond {
			return
		}
		const width = 24
		full := width * done / max(1, p.total)
		fmt.Fprintf(p.out, "\r\x1b[K%s [%s%s] %d/%d%s  %s", p.what, strings.Repeat("=", full), strings.Repeat(" ", width-full), done, p.total, p.left(now), next)
		p.drawn, p.last = true, now
		return
	}
	if now.Sub(p.last) >= plainEvery {
		fmt.Fprintf(p.out, "%s: %d of %d%s, now %s\n", p.what, done, p.total, p.left(now), next)
		p.last = now
	}
}

// left estimates the time to go; nothing before the first step is done.
func (p *progress) left(now time.Time) string {
	if p.done == 0 || p.done >= p.total {
		return ""
	}
	each := now.Sub(p.start) / time.Duration(p.done)
	return fmt.Sprintf(", %s left", (each * time.Duration(p.total-p.done)).Round(time.Second))
}

// say writes a line without spoiling the bar.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// end takes the bar away.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}
