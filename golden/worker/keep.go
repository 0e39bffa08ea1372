package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/agent/tether"
	"github.com/assay-gpu/assay/golden"
)

// A keeper sees one child through to its end.
type keeper struct {
	Parent
	gpu   string
	child *exec.Cmd
	flag  io.Closer // the child's standard input: its end is the stop flag
	lines chan line
	end   chan struct{} // closed when its output has been read
	proc  *tether.Process
	left  chan struct{} // closed when Run need not wait any longer

	mu sync.Mutex
	r  golden.Result
}

// one runs one child.
func (p Parent) one(ctx context.Context, gpu, visible, turns string) (golden.Result, error) {
	k := &keeper{Parent: p, gpu: gpu, lines: make(chan line), end: make(chan struct{}), left: make(chan struct{}), r: golden.Result{GPU: golden.Device{UUID: gpu}}}
	dir, err := os.MkdirTemp("", "assay-golden-")
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "mps"), 0o700)
	}
	var stderr bytes.Buffer
	var stdout io.ReadCloser
	if err == nil {
		k.child = exec.Command(p.Command[0], p.Command[1:]...)
		k.child.Env = append(environment(visible, filepath.Join(dir, "mps")), Flag+"=1", turnEnv+"="+turns)
		k.child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		k.child.Stderr = &tail{b: &stderr, max: 4096}
		if k.flag, err = k.child.StdinPipe(); err == nil {
			stdout, err = k.child.StdoutPipe()
		}
	}
	if err == nil {
		// An agent that dies drops the flag's pipe, and its children stop as they do for the flag.
		k.proc, err = tether.Start(k.child, syscall.SIGTERM, k.end)
	}
	if err != nil {
		os.RemoveAll(dir)
		k.r.Err = fmt.Sprintf("start the golden child: %v", err)
		return k.r, nil
	}
	go read(stdout, k.lines)
	done := make(chan error, 1)
	go func() {
		defer os.RemoveAll(dir)
		err := k.keep(ctx, &stderr)
		if p.Ended != nil {
			p.Ended(gpu, err)
		}
		done <- err
	}()
	select {
	case err = <-done:
	case <-k.left:
		err = &AliveError{gpu, k.child.Process.Pid, p.Leave}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.r
	r.Stages = slices.Clone(r.Stages) // a child that lives on may still tell
	return r, err
}

// read takes the lines that a child writes until it closes its output. What is no line of ours is left out.
func read(r io.Reader, to chan<- line) {
	defer close(to)
	s := bufio.NewScanner(r)
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var l line
		if json.Unmarshal(s.Bytes(), &l) == nil {
			to <- l
		}
	}
}

// keep takes in what the child says until it has ended. The error is a *StuckError.
func (k *keeper) keep(ctx context.Context, stderr *bytes.Buffer) error {
	why, over := k.listen(ctx)
	close(k.end)
	if !over {
		return &StuckError{k.gpu, k.child.Process.Pid}
	}
	select {
	case <-k.proc.Done():
		k.mu.Lock()
		defer k.mu.Unlock()
		if why == "" && k.r.Seconds == 0 {
			k.r.Err = fmt.Sprintf("the golden child ended without a result: %v", k.proc.Wait())
			if t := strings.TrimSpace(stderr.String()); t != "" {
				k.r.Err += ": " + t
			}
		}
		return nil
	case <-time.After(k.Killed):
		return &StuckError{k.gpu, k.child.Process.Pid}
	}
}

// listen takes in lines until the child closes its output, and ends it when its time is over. over is false when it kept its
// output open in spite of SIGKILL.
func (k *keeper) listen(ctx context.Context) (why string, over bool) {
	total, silent := time.NewTimer(k.Total), time.NewTimer(k.Stage)
	defer total.Stop()
	defer silent.Stop()
	var leave, term, kill, stuck <-chan time.Time
	stop := func(reason string) {
		if why != "" {
			return
		}
		why = reason
		_ = k.flag.Close()
		term, kill = time.After(k.Term), time.After(k.Kill)
		if k.Leave > 0 {
			leave = time.After(k.Leave)
		}
		k.mu.Lock()
		k.r.Err = why
		k.mu.Unlock()
	}
	signal := func(s syscall.Signal) { _ = syscall.Kill(-k.child.Process.Pid, s) } // it may be gone: then there is nothing to end
	done := ctx.Done()
	for {
		select {
		case l, ok := <-k.lines:
			if !ok {
				return why, true
			}
			silent.Reset(k.Stage)
			k.take(l, why)
		case <-silent.C:
			stop(fmt.Sprintf("no word from the golden child for %s: a call or a kernel hangs", k.Stage))
		case <-total.C:
			stop(fmt.Sprintf("the suite did not end within %s", k.Total))
		case <-done:
			done = nil
			stop("stopped: " + context.Cause(ctx).Error())
		case <-leave:
			close(k.left)
			leave = nil
		case <-term:
			signal(syscall.SIGTERM)
			term = nil
		case <-kill:
			signal(syscall.SIGKILL)
			kill, stuck = nil, time.After(k.Killed) // the pipe closes with the process; a child in the driver keeps it open
		case <-stuck:
			go func() {
				for range k.lines { // should it end after all
				}
			}()
			return why, false
		}
	}
}

// take takes in one line. Why the child was told to stop outranks what it says of its end.
func (k *keeper) take(l line, why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case l.Result != nil:
		k.r = *l.Result
		if why != "" {
			k.r.Err = why
		}
	case l.Stage != nil:
		// A stage is told when something is wrong with it, and again when more is known.
		if n := len(k.r.Stages); n > 0 && k.r.Stages[n-1].Kernel == l.Stage.Kernel && k.r.Stages[n-1].Seed == l.Stage.Seed {
			k.r.Stages[n-1] = *l.Stage
		} else {
			k.r.Stages = append(k.r.Stages, *l.Stage)
		}
	case l.Device != nil:
		k.r.GPU = *l.Device
	}
}
