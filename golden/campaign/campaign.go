// Package campaign says what a suite finds of faults in the PTX machine: each fault in turn, by itself, and the suite's
// kernels in order until one gives a wrong word.
//
// Its figures are of the faults that it is given and of the machine's model of a GPU. They say nothing of how likely such
// faults are in silicon, nor of kinds of fault that the model does not have.
package campaign

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/explain"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ptxvm"
	"github.com/assay-gpu/assay/golden/ref"
)

// What became of a fault.
const (
	Detected    = "sdc_detected" // a wrong word was reported
	DUE         = "due"          // the launch ended in an error or a hang: seen, and not as a wrong word
	Missed      = "missed"       // every word was right, and a workload would have been corrupted
	Idle        = "benign"       // every word was right, and no workload would have been corrupted
	NotModelled = "not_modelled" // the machine cannot break that unit
)

// A Line is the outcome of one fault.
type Line struct {
	ID      string  `json:"id"`
	Class   string  `json:"class"`
	Unit    string  `json:"unit"`
	Outcome string  `json:"outcome"`
	Kernel  string  `json:"kernel,omitempty"` // the first to show it
	Nanos   uint64  `json:"nanos"`            // simulated device time until then
	Hits    uint64  `json:"hits"`             // results that the fault changed
	Located *Placed `json:"located,omitempty"`

	Workload string   `json:"workload,omitempty"` // the first that the fault corrupts: without one it does not count
	Shown    []string `json:"shown,omitempty"`    // with Options.Each: all kernels that show it by themselves
	Others   []string `json:"others,omitempty"`   // with Options.Others: the stand-ins that see it
	Err      string   `json:"err,omitempty"`
}

// Placed says which parts of the place were named right.
type Placed struct {
	SM        bool   `json:"sm"`
	Partition bool   `json:"partition"`
	Lane      bool   `json:"lane"`
	Bit       bool   `json:"bit"` // of a stuck fault: the bit that explains every wrong word is one that it strikes
	Step      int    `json:"step"`
	Bits      uint32 `json:"bits"` // that differ in the first wrong word, after the step's rotation
}

// Options of a campaign.
type Options struct {
	Kernels    []string // IDs, in order
	Size       golden.Size
	Capability int
	Seed       int
	SMs        int  // the fault's SM is taken modulo this: all SMs are alike
	Each       bool // run every kernel on every fault, by itself
	Others     bool // run the stand-ins for other tools on every fault
}

// A Runner runs faults. It keeps the parsed kernels.
type Runner struct {
	o       Options
	entries map[string]*ptxvm.Entry
	jobs    []*workload
	clean   [][]byte // what they give
	memory  *workload
	takes   uint64 // nanoseconds of simulated time that the suite takes, with Options.Others
}

// New makes a runner.
func New(o Options) (*Runner, error) {
	r := &Runner{o: o, entries: map[string]*ptxvm.Entry{}}
	for _, id := range o.Kernels {
		k, ok := kernels.Lookup(id)
		if !ok {
			return nil, fmt.Errorf("no kernel %q", id)
		}
		m, err := ptxvm.Parse(k.Source())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		r.entries[id] = m.Entries[id]
	}
	return r, r.prepare()
}

// Run runs the suite on a device with one fault, and then the workloads.
func (r *Runner) Run(f ptxvm.Fault) (Line, error) {
	l := Line{ID: f.ID, Class: f.Class, Unit: f.Unit().String()}
	f.Where.SM %= r.o.SMs
	d := r.device(f)
	if len(d.NotModelled) > 0 {
		l.Outcome = NotModelled
		return l, nil
	}
	start := d.Now()
	for _, env := range passes(f) {
		d.SetEnv(env)
		for i, id := range r.o.Kernels {
			k, _ := kernels.Lookup(id)
			if k.Skip(r.o.Capability) != "" {
				continue
			}
			if err := r.stage(d, f, k, uint32(i+1), &l); err != nil {
				return l, err
			}
			l.Nanos, l.Hits = d.Now()-start, d.Hits()[f.ID]
			if l.Outcome != "" {
				break
			}
		}
		if l.Outcome != "" {
			break
		}
	}
	if err := r.count(f, &l); err != nil {
		return l, err
	}
	if r.o.Others {
		var err error
		if l.Others, err = r.standIns(f); err != nil {
			return l, err
		}
	}
	if r.o.Each {
		return l, r.each(f, &l)
	}
	return l, nil
}

// stage runs one kernel and says in the line what came of it: nothing, when all words are right.
func (r *Runner) stage(d *ptxvm.Device, f ptxvm.Fault, k kernels.Kernel, launch uint32, l *Line) error {
	want, err := golden.Known(k.ID, r.o.Size, r.o.Seed)
	if err != nil {
		return err
	}
	out, err := r.launch(d, k, launch, r.o.Size.Steps(k))
	var trap *ptxvm.Trap
	if errors.As(err, &trap) {
		l.Outcome, l.Kernel, l.Err = DUE, k.ID, trap.Kind
		return nil
	}
	if err != nil {
		return err
	}
	for slot, words := range out {
		if words != nil && golden.DigestOf(words) != want {
			l.Outcome, l.Kernel = Detected, k.ID
			l.Located = r.locate(f, k, slot)
			return nil
		}
	}
	if sm := f.Where.SM; out[sm] == nil || out[(sm+1)%r.o.SMs] == nil {
		l.Outcome, l.Kernel, l.Err = DUE, k.ID, "an SM gave no output"
	}
	return nil
}

func (r *Runner) device(f ptxvm.Fault) *ptxvm.Device {
	return ptxvm.NewDevice(ptxvm.Config{SMs: r.o.SMs, Capability: r.o.Capability, Seed: f.Seed, SharedSM: 16 << 10, Faults: []ptxvm.Fault{f},
		Budget: 1 << 22, Env: passes(f)[len(passes(f))-1]})
}

// locate bisects on a device of its own, as the worker does.
func (r *Runner) locate(f ptxvm.Fault, k kernels.Kernel, slot int) *Placed {
	p := &Placed{SM: slot == f.Where.SM, Step: -1}
	d := r.device(f)
	var block []uint32
	at := func(steps int) (*golden.Mismatch, error) {
		out, err := r.launch(d, k, 99, steps)
		if err != nil || out[slot] == nil {
			return nil, err
		}
		block = out[slot]
		return golden.Compare(out[slot], ref.Block(k.ID, uint64(r.o.Seed), r.o.Size.Threads, steps), r.o.Size.Threads), nil
	}
	n, err := golden.FirstWrong(r.o.Size.Steps(k), func(steps int) (bool, error) {
		m, err := at(steps)
		return m != nil, err
	})
	if err != nil {
		return p
	}
	m, err := at(n)
	if err != nil || m == nil {
		return p
	}
	o := golden.Locate(m, n)
	p.Step, p.Bits = o.Step, o.Expected^o.Got
	p.Partition = o.Partition == f.Where.Part
	p.Lane = f.Lanes()>>o.Lane&1 != 0
	if f.Class == "stuck" && f.When.P >= 1 {
		// As the worker does: which stuck bit gives every word of the block?
		s, err := explain.Explain(context.Background(), explain.Question{Kernel: k.ID, Size: r.o.Size, Seed: r.o.Seed, Steps: n, Capability: r.o.Capability, Got: block})
		p.Bit = err == nil && s != nil && s.Unit == f.Where.Unit && (f.Do.Xor|f.Do.Or|^f.Do.And)>>s.Bit&1 != 0
	}
	return p
}

// launch runs a kernel and gives each SM's words, without the key; nil for one that did not finish.
func (r *Runner) launch(d *ptxvm.Device, k kernels.Kernel, launch uint32, steps int) ([][]uint32, error) {
	slots, n := r.o.SMs, k.Words*r.o.Size.Threads
	in, poison := make([]uint32, slots*n), make([]uint32, slots*n)
	for i := range n {
		w := ref.Input(uint64(r.o.Seed), i)
		for s := range slots {
			in[s*n+i] = w ^ ref.Mix(uint32(s), uint32(i), launch)
			poison[s*n+i] = 0xDEADBEEF + uint32(i)
		}
	}
	var addrs []uint64
	behind := make([]uint32, slots*k.Behind(r.o.Size.Threads))
	for _, w := range [][]uint32{append(poison, behind...), in, make([]uint32, slots+1), make([]uint32, slots*16)} {
		a := d.Alloc(4 * len(w))
		defer func() { _ = d.Free(a) }() // it was allocated just now
		if err := d.Write(a, bytesOf(w)); err != nil {
			return nil, err
		}
		addrs = append(addrs, a)
	}
	var params []byte
	for _, a := range addrs {
		params = binary.LittleEndian.AppendUint64(params, a)
	}
	none := ^uint32(0)
	params = append(params, bytesOf([]uint32{uint32(slots), uint32(slots), uint32(steps), launch, none, 0, 0, 0})...)
	if err := d.Launch(r.entries[k.ID], 2*slots, r.o.Size.Threads, r.dynamic(), params); err != nil {
		return nil, err
	}
	out, where := make([]byte, 4*slots*n), make([]byte, 4*slots*16)
	if err := errors.Join(d.Read(addrs[0], out), d.Read(addrs[3], where)); err != nil {
		return nil, err
	}
	res := make([][]uint32, slots)
	for s := range slots {
		if binary.LittleEndian.Uint32(where[4*(16*s+3):]) != 0x600DD00D {
			continue
		}
		w := make([]uint32, n)
		for i := range w {
			w[i] = binary.LittleEndian.Uint32(out[4*(s*n+i):])
		}
		golden.Unkey(w, uint32(s), launch)
		res[s] = w
	}
	return res, nil
}

func bytesOf(w []uint32) []byte {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// dynamic is the dynamic shared memory of a launch: three quarters of what the simulated SM has at reduced size, and enough
// for 1,024 threads otherwise.
func (r *Runner) dynamic() int { return max(12<<10, 32*r.o.Size.Threads) }
