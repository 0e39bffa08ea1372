package ptxvm

import (
	"fmt"
	"slices"
	"sort"
)

// A Config is what a Device is built like, and how hard it is on what it runs.
type Config struct {
	SMs        int    // at least 1
	Capability int    // 10 · major + minor, as 90; how tensor cores sum
	Seed       uint64 // of everything random
	Hostile    bool   // random order of SMs, warps and lanes, short turns, late stores
	Races      bool   // look for accesses that nothing orders
	MoveSM     bool   // a block's %smid may change while it runs, as after preemption
	SharedSM   int    // bytes of shared memory an SM has; 0 is 228 KiB
	ThreadsSM  int    // resident threads an SM has; 0 is 2048
	Budget     uint64 // warp instructions a launch may take before it counts as hung; 0 is 2^33
	Links      bool   // what copies go through may be broken: the caller sends them through Transfer
	Env        Env
	Faults     []Fault
	Tap        func(Result) uint64 // sees every result that is written to a register and says what it becomes; faults then strike no result
	Trace      func(Operation)     // told of every instruction; nil for none
}

// An Env is the state a device is in, which some faults need.
type Env struct {
	TempC float64 // of the die
	MHz   float64 // SM clock; 0 counts one cycle a nanosecond
	Util  float64 // share of pipes busy, 0 to 1
	AgeS  float64 // seconds under load
}

// A Device is a machine with its memory. It is not for use by several goroutines.
type Device struct {
	cfg    Config
	rng    rng
	acc    accumulator
	now    uint64 // nanoseconds
	next   uint64 // next free address
	allocs []*alloc
	sms    []*sm
	faults []*activeFault
	memory []*activeFault // those of them that sit in memory, which all SMs share
	links  []*activeFault // those that only copies go through
	warps  uint64         // warp instructions since the device was made
	lanes  uint64         // lane instructions

	NotModelled []string // ids of faults that the machine cannot break
}

// An alloc is one piece of global memory.
type alloc struct {
	base  uint64
	data  []byte
	undef []uint64 // a bit for each byte that nobody has written
	words []shadow // for the race detector; one for each 4 bytes
}

type sm struct {
	id      int
	blocks  []*block
	l1      map[uint64]*[lineBytes]byte
	faults  [units][]*activeFault
	faulty  bool
	shared  int
	threads int
}

const (
	lineBytes    = 128
	sharedWindow = 0x0001_0000_0000_0000
	firstAddress = 0x0000_7000_0000_0000
)

// NewDevice makes a device. Faults in the configuration that the machine does not model are named in NotModelled.
func NewDevice(cfg Config) *Device {
	if cfg.SMs < 1 {
		cfg.SMs = 1
	}
	if cfg.SharedSM == 0 {
		cfg.SharedSM = 228 << 10
	}
	if cfg.ThreadsSM == 0 {
		cfg.ThreadsSM = 2048
	}
	if cfg.Budget == 0 {
		cfg.Budget = 1 << 33
	}
	d := &Device{cfg: cfg, rng: rng{cfg.Seed}, acc: accumulatorOf(cfg.Capability), next: firstAddress, now: 1 << 40}
	for i := range cfg.SMs {
		d.sms = append(d.sms, &sm{id: i, l1: map[uint64]*[lineBytes]byte{}})
	}
	for i := range cfg.Faults {
		d.install(&cfg.Faults[i])
	}
	if cfg.Tap != nil {
		for _, s := range d.sms {
			s.faulty = true
		}
	}
	return d
}

// Instructions gives how much the device has run: warp instructions, and those times their active lanes.
func (d *Device) Instructions() (warps, lanes uint64) { return d.warps, d.lanes }

// Alloc gives n bytes of global memory that nobody has written. Between two pieces lies a gap that no access may touch.
func (d *Device) Alloc(n int) uint64 {
	if n < 1 {
		n = 1
	}
	a := &alloc{base: d.next, data: make([]byte, n), undef: make([]uint64, (n+63)/64)}
	for i := range a.undef {
		a.undef[i] = ^uint64(0)
	}
	d.next += uint64(n+4095)&^4095 + 4096
	d.allocs = append(d.allocs, a)
	return a.base
}

// Free gives memory back.
func (d *Device) Free(addr uint64) error {
	for i, a := range d.allocs {
		if a.base == addr {
			d.allocs = slices.Delete(d.allocs, i, i+1)
			return nil
		}
	}
	return fmt.Errorf("no memory at %#x", addr)
}

// Write copies from the host.
func (d *Device) Write(addr uint64, b []byte) error {
	a, off := d.find(addr, len(b))
	if a == nil {
		return fmt.Errorf("write of %d bytes at %#x: no such memory", len(b), addr)
	}
	copy(a.data[off:], b)
	for i := off; i < off+len(b); i++ {
		a.undef[i/64] &^= 1 << (i % 64)
	}
	return nil
}

// Read copies to the host.
func (d *Device) Read(addr uint64, b []byte) error {
	a, off := d.find(addr, len(b))
	if a == nil {
		return fmt.Errorf("read of %d bytes at %#x: no such memory", len(b), addr)
	}
	copy(b, a.data[off:])
	return nil
}

func (d *Device) find(addr uint64, n int) (*alloc, int) {
	i := sort.Search(len(d.allocs), func(i int) bool { return d.allocs[i].base > addr }) - 1
	if i < 0 {
		return nil, 0
	}
	a := d.allocs[i]
	off := addr - a.base
	if off+uint64(n) > uint64(len(a.data)) || off+uint64(n) < off {
		return nil, 0
	}
	return a, int(off)
}

// Now is the device's time in nanoseconds: about one warp instruction an SM each.
func (d *Device) Now() uint64 { return d.now }

// cycles is what the clock of every SM counts.
func (d *Device) cycles() uint64 {
	if d.cfg.Env.MHz == 0 {
		return d.now
	}
	return uint64(float64(d.now) * d.cfg.Env.MHz / 1000)
}
