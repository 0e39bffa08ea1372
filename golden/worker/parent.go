package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/agent/tether"
	"github.com/assay-gpu/assay/golden"
)

// A Parent starts children and waits for them, never without limit.
//
// A child that is to end is told so by its stop flag, on which it stops between launches. Term after that comes SIGTERM, Kill
// after it SIGKILL: to kill a process in the middle of a kernel may leave the GPU wedged, so it comes last.
type Parent struct {
	Command []string                    // a child's command line, the suite's flags included
	Others  []string                    // UUIDs of GPUs that every child sees as well, behind its own: those that links may lead to
	Stage   time.Duration               // the longest that a child may be silent: driver start and one kernel
	Total   time.Duration               // of the whole run
	Term    time.Duration               // from the stop flag to SIGTERM
	Kill    time.Duration               // from the stop flag to SIGKILL
	Killed  time.Duration               // how long a killed child may live on before it counts as stuck
	Leave   time.Duration               // from the stop flag, how long Run waits for the child; 0: until it is gone or stuck
	Ended   func(gpu string, err error) // called when a child is gone, or with a *StuckError when it will not go; may be nil
}

// A StuckError says that a child outlived SIGKILL: the driver holds it, and the GPU should be left alone until a reboot.
type StuckError struct {
	GPU string
	PID int
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("golden child %d of GPU %s lives on after SIGKILL: it hangs in the driver", e.PID, e.GPU)
}

// An AliveError says that Run did not wait for a child's end any longer. It is being ended.
type AliveError struct {
	GPU string
	PID int
	For time.Duration // since the stop flag
}

func (e *AliveError) Error() string {
	return fmt.Sprintf("golden child %d of GPU %s has not ended %s after its stop flag", e.PID, e.GPU, e.For)
}

// dropped are variables that change what CUDA does and that a job or a prolog may have left behind.
var dropped = []string{"CUDA_LAUNCH_BLOCKING", "CUDA_FORCE_PTX_JIT", "CUDA_CACHE_PATH", "CUDA_CACHE_MAXSIZE", "CUDA_CACHE_DISABLE", "CUDA_MODULE_LOADING",
	"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_INJECTION64_PATH", "LD_PRELOAD"}

// environment is what a child for one GPU gets, which may be followed by others that it sees. pipe is an empty folder, which
// keeps it out of an MPS server.
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
// leaves a Result that says so. The error is a *StuckError or an *AliveError, or joins several.
func (p Parent) Run(ctx context.Context, gpus []string) ([]golden.Result, error) {
	out := make([]golden.Result, len(gpus))
	errs := make([]error, len(gpus))
	turns := "" // without it nobody waits for others
	if f, err := os.CreateTemp("", "assay-golden-turn-"); err == nil {
		defer os.Remove(f.Name())
		defer f.Close()
		turns = f.Name()
	}
	var wg sync.WaitGroup
	for i, g := range gpus {
		visible := []string{g}
		for _, o := range p.Others {
			if o != g {
				visible = append(visible, o)
			}
		}
		wg.Go(func() { out[i], errs[i] = p.one(ctx, g, strings.Join(visible, ","), turns) })
	}
	wg.Wait()
	return out, errors.Join(errs...)
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
	c.WaitDelay = time.Second
	var stderr bytes.Buffer
	c.Stderr = &tail{b: &stderr, max: 4096}
	var out bytes.Buffer
	c.Stdout = &out
	proc, err := tether.Start(c, syscall.SIGKILL, nil)
	if err == nil {
		err = proc.Wait()
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
