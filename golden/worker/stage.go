package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/cuda"
	"github.com/assay-gpu/assay/golden/kernels"
)

// A tester runs stages on one GPU.
type tester struct {
	dev      *cuda.Device
	gpu      golden.Device
	suite    golden.Suite
	size     golden.Size
	optIn    int // bytes of shared memory a block may have
	rng      *rand.Rand
	launches uint32
	host     string          // why the CPU is not to be trusted
	longest  time.Duration   // that a launch of this stage took
	exposed  golden.Exposure // of this stage so far
	own      Collection      // nil: the kernels are the suite's
	library  string          // the driver's
	sysfs    string          // where it is mounted
	turn     turn

	stopped func() error       // why nothing more is to be launched; nil: go on
	say     func(golden.Stage) // tells of a stage as it stands, before what may take long or be cut off
}

// stage runs one kernel with one seed. An error ends the run: the context may be gone. It is also in the stage.
func (t *tester) stage(k kernels.Kernel, seed int) (s golden.Stage, err error) {
	started := time.Now()
	s = golden.Stage{Kernel: k.ID, Digest: golden.KernelDigest(k), Seed: seed}
	defer func() {
		s.Seconds = time.Since(started).Seconds()
		if err != nil {
			s.Err = err.Error()
		}
	}()
	if s.Skip = k.Skip(t.gpu.Capability); s.Skip != "" {
		return s, nil
	}
	want, err := t.known(k, seed)
	if err != nil {
		return s, err
	}
	f, err := t.load(k, &s)
	if err != nil || f == nil {
		return s, err
	}
	defer func() {
		if e := f.Unload(); err == nil && e != nil {
			err = e
		}
	}()
	t.longest, t.exposed = 0, golden.Exposure{}
	defer func() { s.Exposure = t.exposed }()
	l, err := t.layout(k, f)
	if cuda.Code(err) == cuda.OutOfMemory {
		s.Err = err.Error() // other kernels need less
		return s, nil
	}
	if err != nil || l == nil {
		if err == nil {
			s.Err = "more than one block fits on an SM: none could be told from another"
		}
		return s, err
	}
	defer func() {
		if e := l.free(); err == nil && e != nil {
			err = e
		}
	}()
	s.Words = k.Words * t.size.Threads
	if t.suite.Bytes > 0 && l.bytes() > t.suite.Bytes {
		s.Err = fmt.Sprintf("it needs %d MiB; suite %s may hold %d MiB", l.bytes()>>20, t.suite.Name, t.suite.Bytes>>20)
		return s, nil
	}
	if err := t.first(l, &s, seed, want); err != nil {
		return s, err
	}
	if m := t.suite.Launch; m > 0 && t.longest > m && !t.gpu.Simulated {
		s.Slow = t.longest.Seconds()
	}
	return s, t.plant(l, &s, seed, want)
}

// first is the run that counts, and what follows a mismatch.
func (t *tester) first(l *layout, s *golden.Stage, seed int, want golden.Digest) error {
	o, err := t.cover(l, seed, t.size.Steps(l.k), noCanary)
	if err != nil {
		return err
	}
	worst := -1
	for _, b := range o.blocks {
		sm := golden.SM{SM: b.slot, Warps: t.size.Threads / 32}
		switch {
		case b.end != b.slot:
			sm.Moved = 1
		case golden.DigestOf(b.words) == want:
			sm.Verified = 1
		default:
			m, err := t.examine(l, o, b, seed, want)
			if err != nil {
				return err
			}
			if m == nil {
				s.Err = t.host
				return nil
			}
			sm.Mismatch = m
			if worst < 0 && m.Reread && m.Inputs {
				worst = len(s.SMs)
			}
		}
		s.SMs = append(s.SMs, sm)
	}
	if o.fault != "" && worst < 0 {
		s.Err = o.fault
	}
	if worst >= 0 {
		t.say(*s) // what follows may be cut off
		return t.confirm(l, s, &s.SMs[worst], seed)
	}
	return nil
}

// examine looks at a block whose digest is not the golden's: is the output the same when read again, are the inputs what
// they were, and do two cores of this CPU know better? nil means that the CPU is at fault.
func (t *tester) examine(l *layout, o *outcome, b blockOut, seed int, want golden.Digest) (*golden.Mismatch, error) {
	block, cores, err := recompute(func() ([]uint32, error) { return t.block(l.k, seed, t.size.Steps(l.k)) }, l.k.ID, seed, want)
	if err != nil {
		t.host = err.Error()
		return nil, nil
	}
	m := golden.Compare(b.words, block, t.size.Threads)
	if m == nil {
		t.host = fmt.Sprintf("this CPU gave two digests for one output of %s, seed %d", l.k.ID, seed)
		return nil, nil
	}
	again, err := l.read(b.slot, o.launch)
	if err != nil {
		return nil, err
	}
	m.Digest, m.Cores = golden.DigestOf(b.words).String(), cores
	m.Reread, m.Inputs = slices.Equal(again, b.words), o.inputs
	return m, nil
}

// confirm runs a kernel that gave a wrong result again, with the same seed and with others, and finds the first wrong step.
func (t *tester) confirm(l *layout, s *golden.Stage, sm *golden.SM, seed int) error {
	for i := range golden.Reruns + 2 {
		again := seed
		if i >= golden.Reruns {
			again = (seed + 1 + i - golden.Reruns) % seedsOf(l.k)
		}
		o, err := t.cover(l, again, t.size.Steps(l.k), noCanary)
		if err != nil {
			return err
		}
		want, err := t.known(l.k, again)
		if err != nil {
			return err
		}
		r := golden.Rerun{Seed: again, Launch: int(o.launch), Err: o.fault}
		for _, b := range o.blocks {
			if b.end == b.slot && golden.DigestOf(b.words) != want {
				r.Wrong = append(r.Wrong, b.slot)
			}
		}
		s.Retests = append(s.Retests, r)
	}
	if s.Reproduced(sm.SM) < golden.Reruns {
		return nil // SM and lane only: bisection needs a fault that comes back
	}
	return t.bisect(l, sm, seed)
}

// plant runs once more with one word of one thread struck at the last step, and looks whether that, and only that, is
// reported.
func (t *tester) plant(l *layout, s *golden.Stage, seed int, want golden.Digest) error {
	var good []int
	for _, m := range s.SMs {
		if m.Verified > 0 {
			good = append(good, m.SM)
		}
	}
	if len(good) == 0 || s.Err != "" {
		return nil
	}
	c := canary{
		slot: uint32(good[t.rng.IntN(len(good))]), thread: uint32(t.rng.IntN(t.size.Threads)),
		step: uint32(t.size.Steps(l.k) - 1), mask: 1 << t.rng.IntN(32),
	}
	s.Canary = golden.Canary{SM: int(c.slot), Thread: int(c.thread), Tried: true}
	o, err := t.cover(l, seed, t.size.Steps(l.k), c)
	if err != nil {
		return err
	}
	struck, others := false, 0
	for _, b := range o.blocks {
		if b.end != b.slot || golden.DigestOf(b.words) == want {
			continue
		}
		if b.slot != int(c.slot) {
			others++
			continue
		}
		// Without the canary's own bit the block must be the golden's: then it was that thread's word and no other.
		b.words[c.thread] ^= c.mask
		struck = golden.DigestOf(b.words) == want
	}
	for _, m := range s.SMs {
		if m.Mismatch != nil {
			others = 0 // an SM known to be wrong may be wrong again
		}
	}
	s.Canary.Seen = struck && others == 0
	return nil
}
