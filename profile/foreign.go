package profile

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxForeign is how many cores others may use on average during a window; a
// window in which they use more is measured again.
const maxForeign = .15

// usage is the CPU time of one process so far, and that of the children it has
// waited for.
type usage struct {
	name           string
	parent         int
	self, children time.Duration
}

// total leaves the children of process 1 out: it waits for orphans, and so
// takes over at once what they used in their whole lives.
func (u usage) total(id int) time.Duration {
	if id == 1 {
		return u.self
	}
	return u.self + u.children
}

// clockTick is the unit of times in /proc/PID/stat: 1/100 s on every
// architecture that Linux has had for long (proc(5), USER_HZ).
const clockTick = time.Second / 100

// processes reads the CPU time of all processes that aren't kernel threads.
// Where there is no /proc it finds none.
func processes() map[int]usage {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := make(map[int]usage, len(entries))
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it ended meanwhile
		}
		if u, ok := parseStat(text); ok {
			all[id] = u
		}
	}
	return all
}

// parseStat reads /proc/PID/stat: the name stands in parentheses and may hold
// anything; the fields after it are state, ppid, ..., flags (7th), ..., utime,
// stime, cutime, cstime (12th to 15th).
func parseStat(text []byte) (usage, bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return usage{}, false
	}
	f := strings.Fields(string(text[end+1:]))
	if len(f) < 15 {
		return usage{}, false
	}
	parent, err := strconv.Atoi(f[1])
	if err != nil {
		return usage{}, false
	}
	const kernelThread = 0x00200000 // PF_KTHREAD
	if flags, err := strconv.ParseUint(f[6], 10, 64); err != nil || flags&kernelThread != 0 {
		return usage{}, false
	}
	var times [4]time.Duration
	for i, text := range f[11:15] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return usage{}, false
		}
		times[i] = time.Duration(n) * clockTick
	}
	return usage{string(text[open+1 : end]), parent, times[0] + times[1], times[2] + times[3]}, true
}

// foreign is the CPU time that processes outside of our descendants and
// cgroups used between two readings, and the name of the greediest. What a
// process used that began and ended between the readings shows in its parent;
// so does the whole life of one that only ended between them, which is left out
// where it is more than most, the cores times the time between.
func foreign(before, after map[int]usage, ours map[int]bool, most time.Duration) (total time.Duration, greediest string) {
	isOurs := func(id int) bool {
		for range len(after) {
			if ours[id] {
				return true
			}
			u, ok := after[id]
			if !ok {
				return false
			}
			id = u.parent
		}
		return false
	}
	type use struct {
		id   int
		name string
		time time.Duration
	}
	var uses []use
	for id, u := range after {
		d := u.total(id) - before[id].total(id)
		if d > most {
			d = u.self - before[id].self
		}
		if d > 0 && !isOurs(id) {
			uses = append(uses, use{id, u.name, d})
			total += d
		}
	}
	if len(uses) == 0 {
		return 0, ""
	}
	top := slices.MaxFunc(uses, func(a, b use) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(b.id, a.id)) })
	return total, fmt.Sprintf("%s (process %d)", top.name, top.id)
}

// ours are the ids of this process and of those in the tasks' cgroups.
func ours(tasks []*task) map[int]bool {
	out := map[int]bool{os.Getpid(): true}
	for _, t := range tasks {
		if t.group == nil {
			continue
		}
		for _, id := range t.group.Processes() {
			out[id] = true
		}
	}
	return out
}
