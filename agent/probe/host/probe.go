package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
)

// A Probe reads one node, again and again. Its methods may be called from any goroutine.
type Probe struct {
	src   Source
	guard guard

	mu sync.Mutex
	up map[string]bool // ports that have been up in this run: the counters of others are not read

	threads kernelThreads // belongs to the group processes
	manager int           // the fabric manager's pid; belongs to the group fabric
	health  healthLogs
}

// New returns a probe of the source.
func New(src Source) *Probe { return &Probe{src: src, up: map[string]bool{}} }

// A part is what one group of files gave.
type part[T any] struct {
	value T
	texts Texts
}

// read runs one group's reader under the guard. What hangs is noted in the texts, so that they give the same again.
func read[T any](ctx context.Context, p *Probe, group string, f func(*recorder) T) (T, Texts, error) {
	if t, replay := p.src.(Texts); replay {
		if since, hung := t.hung(group); hung {
			var none T
			return none, Texts{hungPrefix + group: t[hungPrefix+group]}, &hungError{group, since}
		}
	}
	got, err := run(ctx, &p.guard, group, func() part[T] {
		rec := record(p.src)
		return part[T]{f(rec), rec.got}
	})
	var hung *hungError
	if errors.As(err, &hung) {
		got.texts = Texts{hungPrefix + group: hungPrefix + hung.since.String()}
	}
	return got.value, got.texts, err
}

// Read reads everything. limit bounds each group of files; ctx the whole. It always returns: what did not answer says so
// in its reading. The texts are what was read.
func (p *Probe) Read(ctx context.Context, limit time.Duration, pol policy.Policy) (catalog.HostState, Texts) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not read within %s", limit))
	defer cancel()
	var h catalog.HostState
	var wg sync.WaitGroup
	var mu sync.Mutex
	all := Texts{}
	keep := func(t Texts) {
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(all, t)
	}
	group(ctx, p, &wg, keep, "infiniband", &h.Infiniband.Err, &h.Infiniband.HungFor, func(r *recorder) func() {
		got := p.infiniband(r, pol.Infiniband)
		return func() { h.Infiniband = got }
	})
	group(ctx, p, &wg, keep, "ethernet", &h.Ethernet.Err, &h.Ethernet.HungFor, func(r *recorder) func() {
		got := p.ethernet(r, pol.Ethernet)
		return func() { h.Ethernet = got }
	})
	group(ctx, p, &wg, keep, "memory", &h.Memory.Err, nil, func(r *recorder) func() { got := memoryOf(r); return func() { h.Memory = got } })
	group(ctx, p, &wg, keep, "cpu", &h.CPU.Err, nil, func(r *recorder) func() { got := cpuOf(r); return func() { h.CPU = got } })
	group(ctx, p, &wg, keep, "processes", &h.Processes.Err, nil, func(r *recorder) func() { got := processesOf(r, &p.threads); return func() { h.Processes = got } })
	group(ctx, p, &wg, keep, "kernel", &h.Kernel.Err, nil, func(r *recorder) func() { got := kernelOf(r); return func() { h.Kernel = got } })
	group(ctx, p, &wg, keep, "nvme", &h.NVMe.Err, nil, func(r *recorder) func() { got := nvmeOf(r, &p.health); return func() { h.NVMe = got } })
	group(ctx, p, &wg, keep, "timesync", &h.TimeSync.Err, nil, func(r *recorder) func() { got := timesyncOf(r); return func() { h.TimeSync = got } })
	group(ctx, p, &wg, keep, "fabric", &h.FabricManager.Err, nil, func(r *recorder) func() { got := managerOf(r, &p.manager); return func() { h.FabricManager = got } })
	wg.Go(func() { h.Mounts = p.mounts(ctx, keep, pol.Mounts) })
	wg.Wait()
	return h, all
}

// group reads one group beside the others. f returns what puts its reading in place; a group that did not come back
// leaves the reading unread, with the reason in errText and for how long in hungFor, unless that is nil.
func group(ctx context.Context, p *Probe, wg *sync.WaitGroup, keep func(Texts), name string, errText *string, hungFor *time.Duration, f func(*recorder) func()) {
	wg.Go(func() {
		place, texts, err := read(ctx, p, name, f)
		keep(texts)
		if err != nil {
			*errText = err.Error()
			var hung *hungError
			if errors.As(err, &hung) && hungFor != nil {
				*hungFor = hung.since
			}
			return
		}
		place()
	})
}
