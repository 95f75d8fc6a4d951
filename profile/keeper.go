package profile

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// keeper is a small shell that outlives us by a moment: it learns every
// process group and cgroup we make, and when its input ends, because we ended
// in whatever way, kills those that we did not take off the list. So nothing
// survives even kill -9 of the profiler.
type keeper struct {
	mu  sync.Mutex
	in  io.WriteCloser
	cmd *exec.Cmd
}

const keeperScript = `
trap '' INT TERM HUP QUIT
groups=' ' dirs=' '
while read -r verb what; do
  case $verb in
    +group) groups="$groups$what " ;;
    -group) groups="${groups%% $what *} ${groups#* $what }" ;;
    +dir) dirs="$dirs$what " ;;
    -dir) dirs="${dirs%% $what *} ${dirs#* $what }" ;;
  esac
done
for g in $groups; do kill -9 -- "-$g" 2>/dev/null; done
for d in $dirs; do
  n=0
  while [ -d "$d" ] && [ $n -lt 100 ]; do
    while read -r p; do kill -9 "$p" 2>/dev/null; done < "$d/cgroup.procs"
    rmdir "$d" 2>/dev/null || sleep 0.02
    n=$((n + 1))
  done
done
`

func startKeeper() (*keeper, error) {
	cmd := exec.Command("/bin/sh", "-c", keeperScript)
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the shell that cleans up: %w", err)
	}
	return &keeper{in: in, cmd: cmd}, nil
}

func (k *keeper) tell(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A keeper that died can't be told; the ordinary way of stopping remains.
	_, _ = fmt.Fprintf(k.in, format+"\n", args...)
}

func (k *keeper) close() {
	_ = k.in.Close()
	_ = k.cmd.Wait()
}
