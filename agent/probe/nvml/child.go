package nvml

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// What the child may use. It holds a few kilobytes of its own; the rest is the library's.
const (
	childMemory = 12 << 20 // bytes, soft limit of the Go heap
	childGC     = 25       // percent
)

// Child is the body of the probe process: it reads requests from in and answers on out, both as JSON lines, until in ends,
// a quit is asked for or ctx is done. lib is the library to load; empty stands for libnvidia-ml.so.1 on the loader's path.
//
// A driver call may never return. Child does not guard against that; its parent does.
func Child(ctx context.Context, in io.Reader, out io.Writer, lib string) error {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(childMemory))
	defer debug.SetGCPercent(debug.SetGCPercent(childGC))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if lib == "" {
		lib = "libnvidia-ml.so.1"
	}
	c := &child{lib: lib, nvml: gonvml.New(gonvml.WithLibraryPath(lib)), out: bufio.NewWriter(out), has: map[string]bool{}}
	requests := make(chan request)
	failed := make(chan error, 1)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		d := json.NewDecoder(in)
		for {
			var r request
			if err := d.Decode(&r); err != nil {
				failed <- err
				return
			}
			select {
			case requests <- r:
			case <-stop:
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil // the parent is gone, or wants no more
			}
			return fmt.Errorf("nvml probe: request: %w", err)
		case r := <-requests:
			if r.Do == doQuit {
				return nil // without nvmlShutdown: it can hang, and the process ends anyway
			}
			if err := c.answer(r); err != nil {
				return fmt.Errorf("nvml probe: answer: %w", err)
			}
		}
	}
}

// child is the state of the probe process.
type child struct {
	lib     string
	nvml    gonvml.Interface
	write   sync.Mutex
	out     *bufio.Writer
	broken  error           // the first failure to write
	has     map[string]bool // symbols looked up
	driver  string
	library string // its version
	count   int
	open    map[request]*device // by what asked for it
	made    int                 // calls on the GPU that is being read

	listener *listener // nil: no events are asked for, or there are none
}

func (c *child) answer(r request) error {
	switch r.Do {
	case doInit:
		reply := c.init()
		if r.Events && reply.Err == "" {
			c.listen()
		}
		c.send(message{Init: reply})
	case doNode:
		c.send(message{Node: c.node()})
	case doGPU:
		c.send(message{GPU: c.gpu(r)})
	default:
		return fmt.Errorf("unknown request %q", r.Do)
	}
	c.write.Lock()
	defer c.write.Unlock()
	return c.broken
}

// send writes one message and flushes it, so that the parent knows of a call before it is made.
func (c *child) send(m message) {
	c.write.Lock()
	defer c.write.Unlock()
	b, err := json.Marshal(m)
	if err == nil {
		_, err = c.out.Write(append(b, '\n'))
	}
	if err == nil {
		err = c.out.Flush()
	}
	if err != nil && c.broken == nil {
		c.broken = err
	}
}

// call announces a driver call and makes it. A symbol that the library does not have is ERROR_FUNCTION_NOT_FOUND: calling
// it would end the process. Of several symbols one is enough: go-nvml calls the newest there is.
func (c *child) call(name string, f func() gonvml.Return, symbols ...string) gonvml.Return {
	if len(symbols) == 0 {
		symbols = []string{name}
	}
	if !c.hasAny(symbols) {
		return gonvml.ERROR_FUNCTION_NOT_FOUND
	}
	c.send(message{Call: name})
	c.made++
	return f()
}

func (c *child) hasAny(symbols []string) bool {
	for _, s := range symbols {
		has, known := c.has[s]
		if !known {
			has = c.nvml.Extensions().LookupSymbol(s) == nil
			c.has[s] = has
		}
		if has {
			return true
		}
	}
	return false
}

// why says in words what the driver returned. It makes no call: the library's own nvmlErrorString may be what is missing.
func why(call string, ret gonvml.Return) string {
	text, ok := returns[ret]
	if !ok {
		text = fmt.Sprintf("error %d", int(ret))
	}
	return call + ": " + text
}

// returns are the words for what a probe may be told. Source: nvml.h, nvmlReturn_enum.
var returns = map[gonvml.Return]string{
	gonvml.ERROR_UNINITIALIZED:             "NVML was not started",
	gonvml.ERROR_INVALID_ARGUMENT:          "invalid argument",
	gonvml.ERROR_NOT_SUPPORTED:             "not supported",
	gonvml.ERROR_NO_PERMISSION:             "no permission",
	gonvml.ERROR_NOT_FOUND:                 "not found",
	gonvml.ERROR_INSUFFICIENT_POWER:        "power cables are not attached",
	gonvml.ERROR_DRIVER_NOT_LOADED:         "driver not loaded",
	gonvml.ERROR_TIMEOUT:                   "timeout",
	gonvml.ERROR_IRQ_ISSUE:                 "interrupt issue",
	gonvml.ERROR_LIBRARY_NOT_FOUND:         "library not found",
	gonvml.ERROR_FUNCTION_NOT_FOUND:        "function not found in this driver's library",
	gonvml.ERROR_CORRUPTED_INFOROM:         "infoROM is corrupted",
	gonvml.ERROR_GPU_IS_LOST:               "GPU is lost",
	gonvml.ERROR_RESET_REQUIRED:            "GPU requires a reset",
	gonvml.ERROR_OPERATING_SYSTEM:          "blocked by the operating system",
	gonvml.ERROR_LIB_RM_VERSION_MISMATCH:   "driver and library versions differ",
	gonvml.ERROR_IN_USE:                    "in use",
	gonvml.ERROR_MEMORY:                    "out of memory",
	gonvml.ERROR_NO_DATA:                   "no data",
	gonvml.ERROR_INSUFFICIENT_RESOURCES:    "out of resources",
	gonvml.ERROR_ARGUMENT_VERSION_MISMATCH: "structure version unknown to this driver",
	gonvml.ERROR_NOT_READY:                 "not ready",
	gonvml.ERROR_GPU_NOT_FOUND:             "no GPU found",
	gonvml.ERROR_UNKNOWN:                   "unknown error",
}
