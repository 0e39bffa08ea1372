package campaign

import (
	"strings"

	"github.com/assay-gpu/assay/golden/netlist"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// A Stream is what one physical unit was given to compute, in order: the operands of each operation, port after port, and
// which part of the result it kept.
type Stream struct {
	Ops   []uint64
	Views []uint8
}

// A tap listens to one lane of one partition of SM 0, and writes down what its units compute. An instruction that the
// assembler makes several machine instructions of, a 64-bit product or a division, is left out.
type tap struct {
	part, lane int
	most       int // operations kept of each unit
	streams    map[string]*Stream
	buf        []uint64
}

func newTap(part, lane, most int) *tap {
	t := &tap{part: part, lane: lane, most: most, streams: map[string]*Stream{}}
	for _, m := range netlist.Models() {
		t.streams[m.Name] = &Stream{}
	}
	return t
}

func (t *tap) put(model string, view uint8, ops ...uint64) {
	if s := t.streams[model]; len(s.Views) < t.most {
		s.Ops, s.Views = append(s.Ops, ops...), append(s.Views, view)
	}
}

// Views of the multiplier.
const (
	whole uint8 = iota
	lowHalf
	highHalf
)

const low32 = 0xFFFFFFFF

// one is told of an operation.
func (t *tap) one(o ptxvm.Operation) {
	if sm, part := o.Place(); sm != 0 || part != t.part || o.Lanes>>t.lane&1 == 0 {
		return
	}
	name := o.Name()
	if strings.HasPrefix(name, "mma.") {
		if name == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" {
			t.dot(o)
		}
		return
	}
	t.buf = o.Operands(t.lane, t.buf[:0])
	x := t.buf
	switch name {
	case "mad.wide.u32":
		t.put("mad32", whole, x[0], x[1], x[2])
	case "mul.wide.u32":
		t.put("mad32", whole, x[0], x[1], 0)
	case "mad.lo.u32", "mad.lo.s32":
		t.put("mad32", lowHalf, x[0], x[1], x[2]&low32)
	case "mul.lo.u32", "mul.lo.s32":
		t.put("mad32", lowHalf, x[0], x[1], 0)
	case "mul.hi.u32":
		t.put("mad32", highHalf, x[0], x[1], 0)
	case "mad.hi.u32":
		t.put("mad32", highHalf, x[0], x[1], x[2]<<32)
	case "lop3.b32":
		t.put("lop3", whole, x[0], x[1], x[2], uint64(o.Table()))
	case "and.b32":
		t.put("lop3", whole, x[0], x[1], 0, 0xC0)
	case "or.b32":
		t.put("lop3", whole, x[0], x[1], 0, 0xFC)
	case "xor.b32":
		t.put("lop3", whole, x[0], x[1], 0, 0x3C)
	case "not.b32":
		t.put("lop3", whole, x[0], 0, 0, 0x0F)
	case "shf.l.wrap.b32":
		t.put("shift", whole, x[0], x[1], x[2], 1, 0)
	case "shf.r.wrap.b32":
		t.put("shift", whole, x[0], x[1], x[2], 0, 0)
	case "shf.l.clamp.b32":
		t.put("shift", whole, x[0], x[1], x[2], 1, 1)
	case "shf.r.clamp.b32":
		t.put("shift", whole, x[0], x[1], x[2], 0, 1)
	case "shr.u32", "shr.b32":
		t.put("shift", whole, x[0], 0, x[1], 0, 1)
	case "shr.s32":
		t.put("shift", whole, x[0], uint64(uint32(int32(x[0])>>31)), x[1], 0, 1)
	case "add.s64", "add.u64":
		t.put("address64", whole, x[0], x[1])
	case "fma.rn.f16x2", "fma.rn.f16":
		t.put("fma16", whole, x[0]&0xFFFF, x[1]&0xFFFF, x[2]&0xFFFF)
	case "fma.rn.f32":
		t.put("fma32", whole, x[0], x[1], x[2])
	case "add.rn.f32", "add.f32": // FADD and FMUL run in the same pipe
		t.put("fma32", whole, x[0], 0x3F800000, x[1])
	case "sub.rn.f32", "sub.f32":
		t.put("fma32", whole, x[0], 0x3F800000, x[1]^1<<31)
	case "mul.rn.f32", "mul.f32":
		t.put("fma32", whole, x[0], x[1], 1<<31)
	case "fma.rn.f64":
		t.put("fma64", whole, x[0], x[1], x[2])
	case "add.rn.f64", "add.f64":
		t.put("fma64", whole, x[0], 0x3FF0000000000000, x[1])
	case "mul.rn.f64", "mul.f64":
		t.put("fma64", whole, x[0], x[1], 1<<63)
	default:
		if op, _, _ := strings.Cut(name, "."); (op == "ld" || op == "st" || op == "atom" || op == "red") && strings.Contains(name, ".global") {
			t.put("address64", whole, x[0], x[1])
		}
	}
}

// dot writes down one element of a tensor product: the lane's first. The PTX ISA says which lane holds which part of A and B.
func (t *tap) dot(o ptxvm.Operation) {
	var op [33]uint64
	row, col := t.lane/4, t.lane%4*2
	for k := range 16 {
		t.buf = o.Operands(4*row+k%8/2, t.buf[:0])
		op[k] = t.buf[k/8*2] >> (16 * (k % 2)) & 0xFFFF
		t.buf = o.Operands(4*col+k%8/2, t.buf[:0])
		op[16+k] = t.buf[4+k/8] >> (16 * (k % 2)) & 0xFFFF
	}
	op[32] = o.Operands(t.lane, t.buf[:0])[6]
	t.put("dot16", whole, op[:]...)
}
