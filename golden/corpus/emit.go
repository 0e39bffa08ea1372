package corpus

import (
	"fmt"
	"strings"
)

// A value is a register that a program has computed, with what is known of it.
type value struct {
	reg   string
	float typ // what it is fit for; none: only bits
	size  int // of a float: its magnitude is below 2^size
}

type typ uint8

const (
	none typ = iota
	f32
	f64
	f16x2
	bf16x2
)

// An emitter writes a program's step.
type emitter struct {
	id    string
	b     strings.Builder
	tier  int
	r, rd []value // words and double words
	pred  []string
	n     map[string]int // registers so far, by kind
	label int
	fresh []string // results that are not taken in yet, with their register's kind
	acc   int
	apart bool // lanes may have parted since the last barrier of the warp
}

func newEmitter(id string, tier int) *emitter {
	e := &emitter{id: id, tier: tier, n: map[string]int{}, apart: true}
	for i := range 4 {
		e.r = append(e.r, value{reg: fmt.Sprintf("%%x%d", i)})
	}
	e.r = append(e.r, value{reg: "%v"}) // a word of the state and the step
	return e
}

// ins writes one instruction.
func (e *emitter) ins(format string, args ...any) { fmt.Fprintf(&e.b, "\t"+format+";\n", args...) }

// reg names a new register: r, rd, h or p.
func (e *emitter) reg(kind string) string {
	n := e.n[kind]
	e.n[kind]++
	return fmt.Sprintf("%%%s%d", kind, n)
}

// word, wide and truth name a new register whose value is taken in at the end of the group.
func (e *emitter) word() string {
	r := e.reg("r")
	e.fresh = append(e.fresh, r)
	return r
}

func (e *emitter) wide() string {
	r := e.reg("rd")
	e.fresh = append(e.fresh, r)
	return r
}

func (e *emitter) truth() string {
	r := e.reg("p")
	e.fresh = append(e.fresh, r)
	return r
}

// keep makes a result one that later instructions may take.
func (e *emitter) keep(v value) {
	if strings.HasPrefix(v.reg, "%rd") {
		e.rd = append(e.rd, v)
	} else {
		e.r = append(e.r, v)
	}
}

// bits picks a word of any content.
func (e *emitter) bits(sel uint32) string { return e.r[int(sel)%len(e.r)].reg }

// bits64 picks a double word, or makes one of two words.
func (e *emitter) bits64(sel uint32) string {
	if len(e.rd) > 0 && sel%3 != 0 {
		return e.rd[int(sel/3)%len(e.rd)].reg
	}
	d := e.wide()
	e.ins("mov.b64 %s, {%s, %s}", d, e.bits(sel/3), e.bits(sel/7))
	e.keep(value{reg: d})
	return d
}

// truthOf picks a predicate, or makes one.
func (e *emitter) truthOf(sel uint32) string {
	if len(e.pred) > 0 && sel%3 != 0 {
		return e.pred[int(sel/3)%len(e.pred)]
	}
	p := e.truth()
	e.ins("setp.lt.s32 %s, %s, %s", p, e.bits(sel/3), e.bits(sel/11))
	e.pred = append(e.pred, p)
	return p
}

// real picks a floating operand of magnitude below 2^most: one that was computed, or a word of the state whose exponent is
// set within bounds.
func (e *emitter) real(t typ, sel uint32, most int) value {
	var fit []value
	from := e.r
	if t == f64 {
		from = e.rd
	}
	for _, v := range from {
		if v.float == t && v.size <= most {
			fit = append(fit, v)
		}
	}
	if len(fit) > 0 && sel%4 != 0 {
		return fit[int(sel/4)%len(fit)]
	}
	return e.decode(t, sel/4, false)
}

// decode sets the exponent bits of a word so that it is a normal number between 2^-15 (2^-31 for f64, 2^-3 for the 16-bit
// types) and 2. Without its sign, when positive.
func (e *emitter) decode(t typ, sel uint32, positive bool) value {
	mask, set := map[typ]uint32{f32: 0x87FFFFFF, f64: 0x81FFFFFF, f16x2: 0x8FFF8FFF, bf16x2: 0x81FF81FF}[t], map[typ]uint32{f32: 0x38000000, f64: 0x3E000000, f16x2: 0x30003000, bf16x2: 0x3E003E00}[t]
	if positive {
		mask &^= 0x80008000
		if t == f32 || t == f64 {
			mask |= 0x8000
		}
	}
	w := e.word()
	e.ins("lop3.b32 %s, %s, %#x, %#x, 0xEA", w, e.bits(sel), mask, set) // (a and mask) or set
	v := value{reg: w, float: t, size: 1}
	if t == f64 {
		d := e.wide()
		e.ins("mov.b64 %s, {%s, %s}", d, e.bits(sel/5), w)
		v.reg = d
	}
	if !positive {
		e.keep(v)
	}
	return v
}

// result makes a float result's register and notes it.
func (e *emitter) result(t typ, size int) string {
	r := ""
	if t == f64 {
		r = e.wide()
	} else {
		r = e.word()
	}
	e.keep(value{reg: r, float: t, size: size})
	return r
}

// joined has the warp's lanes meet, which every collective needs.
func (e *emitter) joined() {
	if e.apart {
		e.ins("bar.warp.sync 0xffffffff")
		e.apart = false
	}
}

const absorbs = 4

// absorb takes every result since the last time into the accumulators, each of which it turns into a bijection of itself
// and of the result.
func (e *emitter) absorb(how int) {
	fresh := e.fresh
	e.fresh = nil
	take := func(w string) {
		a := fmt.Sprintf("%%c%d", e.acc%4)
		e.acc++
		switch how {
		case 0:
			e.ins("shf.l.wrap.b32 %s, %s, %s, 7", a, a, a)
			e.ins("xor.b32 %s, %s, %s", a, a, w)
		case 1:
			e.ins("mad.lo.u32 %s, %s, 0x9E3779B1, %s", a, a, w)
		case 2:
			e.ins("sub.u32 %s, %s, %s", a, w, a)
		default:
			e.ins("add.u32 %s, %s, %s", a, a, w)
			e.ins("shf.r.wrap.b32 %s, %s, %s, 11", a, a, a)
		}
	}
	for _, f := range fresh {
		switch {
		case strings.HasPrefix(f, "%rd"):
			lo, hi := e.reg("r"), e.reg("r")
			e.ins("mov.b64 {%s, %s}, %s", lo, hi, f)
			take(lo)
			take(hi)
		case strings.HasPrefix(f, "%p"):
			w := e.reg("r")
			e.ins("selp.b32 %s, 0x6A09E667, 0xBB67AE85, %s", w, f)
			take(w)
		default:
			take(f)
		}
	}
}

// step writes what one step does: the groups, and the exchange of the state's halves.
func (p program) step(e *emitter) {
	e.ins("mad.lo.u32 %%v, %%i, 0x9E3779B9, %%x0")
	for i := range 4 {
		e.ins("mov.b32 %%c%d, %#x", i, 0x9E3779B9*uint32(i+1))
	}
	for _, g := range p.groups {
		for _, o := range g.ops {
			kinds[o.kind].emit(e, o)
		}
		e.absorb(g.absorb)
	}
	for i := range 4 {
		e.ins("xor.b32 %%c%d, %%c%d, %%x%d", i, i, i+4)
		e.ins("shf.l.wrap.b32 %%c%d, %%c%d, %%c%d, %d", i, i, i, []int{5, 9, 13, 22}[i])
	}
	for i := range 4 {
		e.ins("mov.b32 %%x%d, %%x%d", i+4, i)
		e.ins("mov.b32 %%x%d, %%c%d", i, i)
	}
}
