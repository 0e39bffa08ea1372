package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/cuda"
	"github.com/assay-gpu/assay/golden/kernels"
)

// Options are what a child is to run.
type Options struct {
	Library string // libcuda.so.1
	Suite   golden.Suite
	Size    golden.Size
	Seed    int      // the first seed; later ones follow, modulo golden.Seeds
	Kernels []string // only these, tests of copies too; nil for all of the suite
	First   []string // of the suite, those to run first: they once caught a device

	Own Collection // programs that run after the suite's kernels; nil: none

	Within time.Duration // that the run is given, of which the suite's hot share is spent on heat; 0: none
	Sysfs  string        // where sysfs is mounted; empty: /sys
	For    time.Duration // that the run is to last, whole rounds of the suite; 0: as long as they take
}

// Flag is the environment variable that has a child watch its standard input: its end, or a byte, is the flag on which it
// stops between launches.
const Flag = "ASSAY_GOLDEN_STOP"

// errFlag is why a child stopped.
var errFlag = errors.New("the stop flag was raised")

// watch gives a context that ends when the flag is raised.
func watch(ctx context.Context, flag io.Reader) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if os.Getenv(Flag) != "" {
		go func() {
			_, _ = flag.Read(make([]byte, 1)) // however it ends, somebody wants the GPU
			cancel(errFlag)
		}()
	}
	return ctx, cancel
}

// A line is one line of a child's output; one with nothing in it says that a stage has ended of which there is no more to tell.
type line struct {
	Device *golden.Device `json:"device,omitempty"`
	Stage  *golden.Stage  `json:"stage,omitempty"`
	Result *golden.Result `json:"result,omitempty"`
}

// Child runs a suite on the only GPU that this process may see and writes what it finds to w. It stops between kernels
// when ctx is done. The error is of writing; all else is in the Result.
func Child(ctx context.Context, w io.Writer, o Options) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started := time.Now()
	ctx, cancel := watch(ctx, os.Stdin)
	defer cancel(nil)
	out := json.NewEncoder(w)
	r := golden.Result{Suite: o.Suite.Name, Size: o.Size.Name}
	err := run(ctx, o, &r, func(l line) { _ = out.Encode(l) })
	if err != nil {
		r.Err = err.Error()
		if r.Blame == "" {
			r.Blame = blame(err)
		}
	}
	r.Seconds, r.CPUSeconds = time.Since(started).Seconds(), cpuSeconds()
	return out.Encode(line{Result: &r})
}

// blame says what an error speaks against: nothing, unless the device itself raised it or it comes before any kernel ran.
func blame(err error) golden.Blame {
	var e *cuda.Error
	switch {
	case asError(err, &e) && e.Device():
		return golden.BlameDevice
	case asError(err, &e), isLoad(err):
		return golden.BlameSetup
	}
	return ""
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// open loads the driver and opens the i-th device.
func open(library string, i int) (*cuda.Device, golden.Device, error) {
	lib, d := (*cuda.Library)(nil), golden.Device{}
	lib, err := cuda.Load(library)
	if err != nil {
		return nil, d, err
	}
	if err := lib.Init(); err != nil {
		return nil, d, err
	}
	if d.Driver, err = lib.Version(); err != nil {
		return nil, d, err
	}
	dev, err := lib.Device(i)
	if err != nil {
		return nil, d, err
	}
	d.UUID, d.Name, d.PCI, d.Library, d.Simulated = dev.UUID, dev.Name, dev.PCI, mapped(library), lib.Simulated
	major, err := dev.Attribute(cuda.AttrMajor)
	if err != nil {
		return nil, d, err
	}
	minor, err := dev.Attribute(cuda.AttrMinor)
	if err != nil {
		return nil, d, err
	}
	d.Capability = 10*major + minor
	if d.SMs, err = dev.Attribute(cuda.AttrSMs); err != nil {
		return nil, d, err
	}
	if kHz, err := dev.Attribute(cuda.AttrClockKHz); err == nil { // only what a run counts as exposure depends on it
		d.MaxMHz = kHz / 1000
	}
	return dev, d, nil
}

func run(ctx context.Context, o Options, r *golden.Result, say func(line)) error {
	dev, d, err := open(o.Library, 0)
	r.GPU = d
	if err != nil {
		return err
	}
	say(line{Device: &d})
	if err := dev.Begin(); err != nil {
		return err
	}
	shared, err := dev.Attribute(cuda.AttrSharedOptIn)
	if err != nil {
		return err
	}
	t := tester{dev: dev, gpu: d, suite: o.Suite, size: o.Size, optIn: shared, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		stopped: func() error { return context.Cause(ctx) }, say: func(s golden.Stage) { say(line{Stage: &s}) },
		library: o.Library, sysfs: cmp.Or(o.Sysfs, "/sys"), turn: openTurn()}
	defer t.turn.close()
	tell := func(s golden.Stage) {
		if r.Add(s) {
			say(line{Stage: &s})
		} else {
			say(line{}) // a suite that goes round for an hour is not taken for one that hangs
		}
	}
	started := time.Now()
	o.plan(func() time.Duration { return time.Since(started) }, func(id string, seed int) bool {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("stopped: %w", cause)
			return false
		}
		if c, ok := golden.LookupCopy(id); ok {
			var ss []golden.Stage
			ss, err = t.copyStages(c, seed)
			for _, s := range ss {
				tell(s)
			}
			return err == nil
		}
		k, ok := kernels.Lookup(id)
		if !ok {
			err = fmt.Errorf("no kernel %q", id)
			return false
		}
		s, failed := t.stage(k, seed)
		if t.host != "" {
			r.Blame = golden.BlameHost
		}
		err = failed
		tell(s)
		return err == nil
	})
	if err != nil {
		return err
	}
	if o.Own != nil {
		if err := t.programs(ctx, o, r, func() time.Duration { return time.Since(started) }); err != nil {
			return err
		}
	}
	return dev.End()
}

// List gives the GPUs that this process may see.
func List(library string) ([]golden.Device, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib, err := cuda.Load(library)
	if err != nil {
		return nil, err
	}
	if err := lib.Init(); err != nil {
		return nil, err
	}
	n, err := lib.Count()
	if err != nil {
		return nil, err
	}
	var out []golden.Device
	for i := range n {
		_, d, err := open(library, i)
		if err != nil {
			return out, fmt.Errorf("device %d: %w", i, err)
		}
		out = append(out, d)
	}
	return out, nil
}
