package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/agent/tether"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A rank is one process of a gang, with all that it starts, below a keeper of its own.
type rank struct {
	ask  wire.RankAsk
	cmd  *exec.Cmd // the keeper
	tail *tail
	done chan struct{} // closed when the last process is gone; code is set then
	code int
}

// start starts one rank as who.
func (l *Launcher) start(o wire.GangOrder, ask wire.RankAsk, script string, who account) (*rank, error) {
	r := &rank{ask: ask, tail: &tail{}, done: make(chan struct{})}
	k := kept{Argv: []string{script}, Dir: o.Dir}
	if !strings.HasPrefix(o.Script, "#!") {
		k.Argv = []string{"/bin/sh", script}
	}
	if k.Dir == "" {
		k.Dir = "/"
	}
	if as := who.credential(); as != nil {
		k.Switch, k.UID, k.GID, k.Groups = true, as.Uid, as.Gid, as.Groups
	}
	cmd, err := keeperOf(l.cfg.Keeper, k)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", ask.Rank, err)
	}
	cmd.Dir = "/"
	cmd.Env = append(environment(o, ask, who), markName+"="+string(l.mark(o.Launch, ask.Rank)))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var sink io.Writer = r.tail
	if o.Output != "" {
		path := outputPath(o, ask)
		if !filepath.IsAbs(path) {
			path = filepath.Join(k.Dir, path)
		}
		f, err := who.openAs(path)
		if err != nil {
			return nil, fmt.Errorf("rank %d: output: %w", ask.Rank, err)
		}
		sink = io.MultiWriter(r.tail, &lenient{w: f})
		defer func() {
			go func() { <-r.done; f.Close() }()
		}()
	}
	cmd.Stdout, cmd.Stderr = sink, sink
	cmd.WaitDelay = 2 * time.Second // a process that no keeper could hold may have the pipe
	told, started, err := os.Pipe()
	if err != nil {
		close(r.done)
		return nil, fmt.Errorf("rank %d: %w", ask.Rank, err)
	}
	defer told.Close()
	cmd.ExtraFiles = []*os.File{started}
	r.cmd = cmd
	proc, err := tether.Start(cmd, killAll, nil)
	started.Close()
	if err != nil {
		close(r.done)
		return nil, fmt.Errorf("rank %d: %w", ask.Rank, err)
	}
	go func() {
		defer close(r.done)
		r.code = exitCode(proc.Wait(), cmd.ProcessState)
		for cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() && len(killMarked(l.mark(o.Launch, ask.Rank))) > 0 { // somebody killed the keeper
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if word, err := io.ReadAll(told); err != nil || len(word) > 0 {
		<-r.done
		return nil, fmt.Errorf("rank %d: %s", ask.Rank, word)
	}
	return r, nil
}

// signal signals the rank's keeper, which may be gone.
func (r *rank) signal(s syscall.Signal) { _ = r.cmd.Process.Signal(s) }

// gone reports whether all of the rank has ended.
func (r *rank) gone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// exitCode is the exit status as a shell tells it.
func exitCode(err error, st *os.ProcessState) int {
	if st != nil {
		if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		if code := st.ExitCode(); code != 0 {
			return code
		}
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return 255
	}
	return 0
}

// endAll ends ranks: SIGTERM to every process, SIGKILL after the grace time, and returns when all are gone.
func (l *Launcher) endAll(rs []*rank) {
	all := func(s syscall.Signal) {
		for _, r := range rs {
			if !r.gone() {
				r.signal(s)
			}
		}
	}
	all(syscall.SIGTERM)
	kill := time.AfterFunc(l.cfg.Grace, func() { all(killAll) })
	defer kill.Stop()
	for _, r := range rs {
		<-r.done
	}
}

// environment is a rank's: a small base, the submitter's, the job's, and what tells the rank from the others, in the names
// that launchers of the field use.
func environment(o wire.GangOrder, r wire.RankAsk, who account) []string {
	var gpus []string
	for _, g := range r.GPUs {
		gpus = append(gpus, strconv.Itoa(g))
	}
	rank, local, size := strconv.Itoa(r.Rank), strconv.Itoa(r.Local), strconv.Itoa(len(o.Ranks))
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + who.home, "USER=" + who.name, "LOGNAME=" + who.name, "SHELL=/bin/sh"}
	env = append(env, o.Env...)
	return append(env, "CUDA_VISIBLE_DEVICES="+strings.Join(gpus, ","),
		"RANK="+rank, "LOCAL_RANK="+local, "LOCAL_WORLD_SIZE="+size,
		"SLURM_PROCID="+rank, "SLURM_LOCALID="+local, "SLURM_NTASKS_PER_NODE="+size)
}

// outputPath fills in the patterns of an output file: %j the job, %x its name, %t the rank, %% a percent sign.
func outputPath(o wire.GangOrder, r wire.RankAsk) string {
	name := strings.ReplaceAll(o.Name, "/", "_")
	return strings.NewReplacer("%%", "%", "%j", strconv.FormatInt(o.Job, 10), "%x", name, "%t", strconv.Itoa(r.Rank)).Replace(o.Output)
}

// lenient is a writer whose failures end nothing: a full disk under the output file must not break the rank's pipe.
type lenient struct{ w io.Writer }

func (l *lenient) Write(p []byte) (int, error) { _, _ = l.w.Write(p); return len(p), nil }

// tailKept is how much of a rank's output is kept, and outputKept of all ranks of a node together, in bytes.
const (
	tailKept   = 32 << 10
	outputKept = 64 << 10
)

// A tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailKept; over > 0 {
		t.buf, t.cut = append(t.buf[:0], t.buf[over:]...), true
	}
	return len(p), nil
}

func (t *tail) text(most int) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, cut := t.buf, t.cut
	if over := len(b) - most; over > 0 {
		b, cut = b[over:], true
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), cut
}

// outputs is the end of what the ranks wrote: much of those that failed and of rank 0, little of the others.
func outputs(rs []*rank) []wire.RankOutput {
	var out []wire.RankOutput
	left := outputKept
	take := func(r *rank, most int) {
		text, cut := r.tail.text(min(most, left))
		if text == "" {
			return
		}
		left -= len(text)
		out = append(out, wire.RankOutput{Rank: r.ask.Rank, Cut: cut, Text: text})
	}
	loud := func(r *rank) bool { return r.ask.Rank == 0 || r.code != 0 && r.code != 128+int(syscall.SIGTERM) }
	for _, r := range rs {
		if loud(r) {
			take(r, tailKept)
		}
	}
	for _, r := range rs {
		if !loud(r) {
			take(r, 4<<10)
		}
	}
	return out
}
