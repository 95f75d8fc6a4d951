package serve

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// sharesLog writes every vector that is handed out, a line a worker. A nil one
// writes nothing.
type sharesLog struct {
	mu     sync.Mutex
	w      io.Writer
	warn   func(string)
	failed bool
}

// SharesHeader is the first line of a log of shares.
const SharesHeader = "time,job,generation,iteration,worker,batch_size,compute_seconds\n"

func newSharesLog(w io.Writer, warn func(string)) *sharesLog {
	if w == nil {
		return nil
	}
	return &sharesLog{w: w, warn: warn}
}

// write is called with the job's lock. Lines of one vector stand together.
func (l *sharesLog) write(j *job, now time.Time) {
	if l == nil {
		return
	}
	var b bytes.Buffer
	lines := csv.NewWriter(&b)
	row := []string{now.UTC().Format(time.RFC3339Nano), j.name, strconv.FormatInt(j.shares.Generation, 10), strconv.FormatInt(j.shares.Iteration, 10), "", "", ""}
	for i, w := range j.workers {
		row[4], row[5] = w.Name, strconv.Itoa(j.shares.BatchSizes[i])
		row[6] = strconv.FormatFloat(j.seconds[i], 'g', 6, 64)
		_ = lines.Write(row) // to a buffer
	}
	lines.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed {
		return
	}
	if _, err := l.w.Write(b.Bytes()); err != nil {
		l.failed = true
		l.warn(fmt.Sprintf("the log of shares ends here: %v", err))
	}
}
