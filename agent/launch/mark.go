package launch

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// markName is the variable in the environment of every rank and its keeper that tells whose they are.
const markName = "ASSAY_RANK"

// A mark is that variable's value: the launcher's directory, the launch and the rank as a path.
type mark string

func (l *Launcher) mark(launch string, rank int) mark {
	return mark(filepath.Join(l.cfg.Dir, launch, strconv.Itoa(rank)))
}

// marked gives the processes of this node whose environment began with the mark of a rank, or of any rank below it as a
// directory, and that have not ended: those too that no keeper watches any more.
func marked(m mark) []int {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	var out []int
	for _, path := range environs {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		b, err := os.ReadFile(path) // empty for one that has ended
		if err != nil {
			continue
		}
		for v := range bytes.SplitSeq(b, []byte{0}) {
			if at, ok := bytes.CutPrefix(v, []byte(markName+"="+string(m))); ok && (len(at) == 0 || at[0] == filepath.Separator) {
				out = append(out, pid)
				break
			}
		}
	}
	return out
}

// killMarked kills them, and gives those that there were.
func killMarked(m mark) []int {
	pids := marked(m)
	for _, p := range pids {
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
	return pids
}

// clear kills what an earlier agent's launches have left on this node, and returns when nothing of it is left or ctx ends:
// until then no launch begins, and the control plane is told of none that it has ended.
func (l *Launcher) clear(ctx context.Context) {
	said := time.Time{}
	for {
		pids := killMarked(mark(l.cfg.Dir))
		if len(pids) == 0 {
			return
		}
		if time.Since(said) > clearSaid {
			said = time.Now()
			l.cfg.Log.Warn("processes of jobs that an earlier agent started are being killed; no job starts here before they are gone", "pids", pids)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// clearSaid is how often the log tells that processes do not end.
const clearSaid = 10 * time.Second
