package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/golden"
)

// A Parent starts children and waits for them, never without limit.
type Parent struct {
	Command []string      // a child's command line, the suite's flags included
	Stage   time.Duration // the longest that a child may be silent: driver start and one kernel
	Total   time.Duration // of the whole run
	Grace   time.Duration // from SIGTERM, on which a child stops between kernels, to SIGKILL
	Killed  time.Duration // how long a killed child may live on before it counts as stuck
}

// A StuckError says that a child outlived SIGKILL: the driver holds it, and the GPU should be left alone until a reboot.
type StuckError struct {
	GPU string
	PID int
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("golden child %d of GPU %s lives on after SIGKILL: it hangs in the driver", e.PID, e.GPU)
}

// dropped are variables that change what CUDA does and that a job or a prolog may have left behind.
var dropped = []string{"CUDA_LAUNCH_BLOCKING", "CUDA_FORCE_PTX_JIT", "CUDA_CACHE_PATH", "CUDA_CACHE_MAXSIZE", "CUDA_CACHE_DISABLE", "CUDA_MODULE_LOADING",
	"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_INJECTION64_PATH", "LD_PRELOAD"}

// environment is what a child for one GPU gets. pipe is an empty folder, which keeps it out of an MPS server.
func environment(gpu, pipe string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(dropped, name) || strings.HasPrefix(name, "NVIDIA_")
	})
	env = append(env, "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_CACHE_DISABLE=1", "CUDA_MODULE_LOADING=EAGER", "CUDA_MPS_PIPE_DIRECTORY="+pipe)
	if gpu != "" {
		env = append(env, "CUDA_VISIBLE_DEVICES="+gpu)
	}
	return env
}

// Run runs one child for each GPU, side by side, and gives their results in order. A child that said nothing, or not all,
// leaves a Result that says so. The error is a *StuckError, or joins several.
func (p Parent) Run(ctx context.Context, gpus []string) ([]golden.Result, error) {
	out := make([]golden.Result, len(gpus))
	errs := make([]error, len(gpus))
	var wg sync.WaitGroup
	for i, g := range gpus {
		wg.Go(func() { out[i], errs[i] = p.one(ctx, g) })
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

func (p Parent) one(ctx context.Context, gpu string) (golden.Result, error) {
	r := golden.Result{GPU: golden.Device{UUID: gpu}}
	dir, err := os.MkdirTemp("", "assay-golden-")
	if err != nil {
		r.Err = err.Error()
		return r, nil
	}
	defer os.RemoveAll(dir)
	pipe := filepath.Join(dir, "mps")
	if err := os.Mkdir(pipe, 0o700); err != nil {
		r.Err = err.Error()
		return r, nil
	}
	c := exec.Command(p.Command[0], p.Command[1:]...)
	c.Env = environment(gpu, pipe)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	c.Stderr = &tail{b: &stderr, max: 4096}
	stdout, err := c.StdoutPipe()
	if err != nil {
		r.Err = err.Error()
		return r, nil
	}
	end, ended, err := start(c)
	if err != nil {
		r.Err = fmt.Sprintf("start the golden child: %v", err)
		return r, nil
	}
	lines := make(chan line)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(stdout)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			var l line
			if json.Unmarshal(s.Bytes(), &l) == nil {
				lines <- l
			}
		}
	}()
	why := p.listen(ctx, c.Process.Pid, lines, &r)
	close(end)
	select {
	case err := <-ended:
		if why == "" && r.Seconds == 0 {
			why = fmt.Sprintf("the golden child ended without a result: %v", err)
			if t := strings.TrimSpace(stderr.String()); t != "" {
				why += ": " + t
			}
		}
	case <-time.After(p.Killed):
		r.Err = why
		return r, &StuckError{gpu, c.Process.Pid}
	}
	if why != "" {
		r.Err = why
	}
	return r, nil
}

// start starts a child from a thread that stays: the death signal is sent when the thread that started a process ends. Its
// end is waited for, and told on ended, only after end is closed: its output is read first.
func start(c *exec.Cmd) (end chan struct{}, ended chan error, err error) {
	end, ended = make(chan struct{}), make(chan error, 1)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			<-end
			ended <- c.Wait()
		}
	}()
	return end, ended, <-started
}

// listen takes in what the child says until it has said all or is out of time, and then sees to it that it ends.
func (p Parent) listen(ctx context.Context, pid int, lines <-chan line, r *golden.Result) (why string) {
	total, silent := time.NewTimer(p.Total), time.NewTimer(p.Stage)
	defer total.Stop()
	defer silent.Stop()
	var kill <-chan time.Time
	stop := func(reason string) {
		if why == "" {
			why = reason
			_ = syscall.Kill(-pid, syscall.SIGTERM)
			kill = time.After(p.Grace)
		}
	}
	done := ctx.Done()
	for {
		select {
		case l, ok := <-lines:
			if !ok {
				return why
			}
			silent.Reset(p.Stage)
			switch {
			case l.Result != nil:
				*r = *l.Result
			case l.Stage != nil:
				r.Stages = append(r.Stages, *l.Stage)
			case l.Device != nil:
				r.GPU = *l.Device
			}
		case <-silent.C:
			stop(fmt.Sprintf("no word from the golden child for %s: a call or a kernel hangs", p.Stage))
		case <-total.C:
			stop(fmt.Sprintf("the suite did not end within %s", p.Total))
		case <-done:
			done = nil
			stop("stopped: " + context.Cause(ctx).Error())
		case <-kill:
			_ = syscall.Kill(-pid, syscall.SIGKILL)
			kill = nil
			// The pipe closes with the process; a child in the driver keeps it open.
			select {
			case <-drained(lines):
			case <-time.After(p.Killed):
			}
			return why
		}
	}
}

func drained(lines <-chan line) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		for range lines { // until it closes
		}
		close(done)
	}()
	return done
}

// A tail keeps the end of what is written to it.
type tail struct {
	b   *bytes.Buffer
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.b.Write(p)
	if n := t.b.Len() - t.max; n > 0 {
		t.b.Next(n)
	}
	return len(p), nil
}

// Devices asks a child which GPUs there are.
func Devices(ctx context.Context, command []string) ([]golden.Device, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = environment("", os.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.WaitDelay = time.Second
	var stderr bytes.Buffer
	c.Stderr = &tail{b: &stderr, max: 4096}
	var out bytes.Buffer
	c.Stdout = &out
	end, ended, err := start(c)
	if err == nil {
		close(end)
		err = <-ended
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, fmt.Errorf("list GPUs: %w", cause)
		}
		return nil, fmt.Errorf("list GPUs: %s", strings.TrimPrefix(strings.TrimSpace(stderr.String()), "assay-agent: "))
	}
	var ds []golden.Device
	if err := json.Unmarshal(out.Bytes(), &ds); err != nil {
		return nil, fmt.Errorf("list GPUs: %w", err)
	}
	return ds, nil
}
