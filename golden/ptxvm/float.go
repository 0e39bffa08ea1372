package ptxvm

import (
	"math"
	"math/bits"
)

// Floating point is done in binary64 with a single rounding at the end: the sum is rounded to odd, which keeps the second
// rounding right (Boldo, Melquiond, 2008).

const (
	nan32 = 0x7FFFFFFF // the NaN that NVIDIA's units give
	nan64 = 0x7FF8000000000000
	nan16 = 0x7FFF
)

func f32(x uint64) float64 { return float64(math.Float32frombits(uint32(x))) }

// to32 rounds to binary32.
func to32(v float64) uint64 {
	if v != v {
		return nan32
	}
	return uint64(math.Float32bits(float32(v)))
}

func f16(x uint64) float64 {
	s, e, m := x>>15&1, int(x>>10&31), x&0x3FF
	var v float64
	switch e {
	case 0:
		v = math.Ldexp(float64(m), -24)
	case 31:
		v = math.Inf(1)
		if m != 0 {
			return math.NaN()
		}
	default:
		v = math.Ldexp(float64(m|0x400), e-25)
	}
	if s != 0 {
		v = -v
	}
	return v
}

// to16 rounds to binary16.
func to16(v float64) uint64 { return narrow(v, 10, 15, nan16) }

func bf16(x uint64) float64 { return f32(x << 16) }

func toBF16(v float64) uint64 { return narrow(v, 7, 127, nan16) }

// narrow rounds to nearest even in a format with man fraction bits and the given bias.
func narrow(v float64, man, bias int, nan uint64) uint64 {
	if v != v {
		return nan
	}
	b := math.Float64bits(v)
	signBit := b >> 63 << (man + bits.Len(uint(bias)) + 1)
	inf := uint64(2*bias+1) << man
	if math.IsInf(v, 0) {
		return signBit | inf
	}
	if v == 0 {
		return signBit
	}
	v = math.Abs(v)
	_, e := math.Frexp(v)          // v = f · 2^e, f in [1/2, 1)
	unit := max(e-1, 1-bias) - man // of the last bit kept
	n := uint64(math.RoundToEven(math.Ldexp(v, -unit)))
	field := uint64(unit + man + bias)
	if n < 1<<man {
		field = 0
		return signBit | n
	}
	return signBit | min(field<<man+n-1<<man, inf)
}

// sumOdd is x + y rounded to odd.
func sumOdd(x, y float64) float64 {
	s := x + y
	if math.IsInf(s, 0) || s != s {
		return s
	}
	t := s - x
	err := (x - (s - t)) + (y - t)
	if err == 0 {
		return s
	}
	if b := math.Float64bits(s); b&1 == 0 {
		if (err > 0) == (s > 0) {
			b++
		} else {
			b--
		}
		return math.Float64frombits(b)
	}
	return s
}

// fmaOdd is a·b + c for operands of up to 24 bits, whose product is exact, rounded to odd.
func fmaOdd(a, b, c float64) float64 { return sumOdd(float64(a*b), c) }

// lifted makes a function of one, two or three reals one of bits in type t.
func codec(t typ) (from func(uint64) float64, to func(float64) uint64) {
	switch {
	case t.bf:
		return bf16, toBF16
	case t.bits == 16 || t.packed:
		return f16, to16
	case t.bits == 32:
		return f32, to32
	}
	return math.Float64frombits, func(v float64) uint64 {
		if v != v {
			return nan64
		}
		return math.Float64bits(v)
	}
}

func unitOf(t typ) Unit {
	switch {
	case t.bits == 64:
		return fma64
	case t.packed || t.bits == 16:
		return fma16
	}
	return fma32
}

// packed runs f on both halves.
func packed(t typ, f func(x, y, z uint64) uint64) func(x, y, z uint64) uint64 {
	if !t.packed {
		return f
	}
	return func(x, y, z uint64) uint64 {
		return f(x&0xFFFF, y&0xFFFF, z&0xFFFF) | f(x>>16&0xFFFF, y>>16&0xFFFF, z>>16&0xFFFF)<<16
	}
}

// plain refuses what the machine does not do: flushing, saturation, other roundings.
func plain(p *parser, in *inst) {
	for _, m := range in.mods {
		switch m {
		case "ftz", "sat", "rz", "rm", "rp", "approx", "full", "relu", "oob":
			p.fail("%s: .%s is not known", in.full, m)
		}
	}
}

func fma(p *parser, in *inst) {
	t := p.lastType(in)
	plain(p, in)
	from, to := codec(t)
	f := func(x, y, z uint64) uint64 { return to(fmaOdd(from(x), from(y), from(z))) }
	if t.bits == 64 {
		f = func(x, y, z uint64) uint64 { return to(math.FMA(from(x), from(y), from(z))) }
	}
	p.set3(in, unitOf(t), t, packed(t, f))
}

func floatAdd(p *parser, in *inst, t typ) {
	plain(p, in)
	from, to := codec(t)
	sub := in.op == "sub"
	f := packed(t, func(x, y, _ uint64) uint64 {
		v := from(y)
		if sub {
			v = -v
		}
		if t.bits == 64 {
			return to(from(x) + v)
		}
		return to(sumOdd(from(x), v))
	})
	p.set2(in, unitOf(t), t, func(x, y uint64) uint64 { return f(x, y, 0) })
}

func floatMul(p *parser, in *inst, t typ) {
	plain(p, in)
	from, to := codec(t)
	f := packed(t, func(x, y, _ uint64) uint64 { return to(from(x) * from(y)) })
	p.set2(in, unitOf(t), t, func(x, y uint64) uint64 { return f(x, y, 0) })
}

// A quotient or root of two 24-bit operands in binary64 (53 bits, more than twice 24 + 2) rounds to the right binary32.
func floatDiv(p *parser, in *inst, t typ) {
	plain(p, in)
	if t.bits < 32 || !in.has("rn") {
		p.fail("%s is not known", in.full)
	}
	from, to := codec(t)
	p.set2(in, unitOf(t), t, func(x, y uint64) uint64 { return to(from(x) / from(y)) })
}

func root(p *parser, in *inst) {
	t := p.lastType(in)
	if in.has("approx") {
		approx(p, in)
		return
	}
	plain(p, in)
	if t.bits < 32 || !in.has("rn") {
		p.fail("%s is not known", in.full)
	}
	from, to := codec(t)
	f := math.Sqrt
	if in.op == "rcp" {
		f = func(v float64) float64 { return 1 / v }
	}
	p.set1(in, unitOf(t), t, func(x uint64) uint64 { return to(f(from(x))) })
}

func signOp(p *parser, in *inst, t typ, f func(x, sign uint64) uint64) {
	sign := uint64(1) << (t.bits - 1)
	if t.packed {
		sign = 0x80008000
	}
	p.set1(in, alu, t, func(x uint64) uint64 { return f(x, sign) })
}

func floatMinMax(p *parser, in *inst, t typ) {
	plain(p, in)
	from, to := codec(t)
	isMin := in.op == "min"
	f := packed(t, func(x, y, _ uint64) uint64 {
		a, b := from(x), from(y)
		switch {
		case a != a && b != b:
			return to(a)
		case a != a:
			return y
		case b != b:
			return x
		case a == b: // -0 is below +0
			if math.Signbit(a) == isMin {
				return x
			}
			return y
		case (a < b) == isMin:
			return x
		}
		return y
	})
	p.set2(in, alu, t, func(x, y uint64) uint64 { return f(x, y, 0) })
}

func floatComparison(p *parser, name string, t typ) func(x, y uint64) bool {
	from, _ := codec(t)
	c, ok := map[string]func(a, b float64) bool{
		"eq": func(a, b float64) bool { return a == b }, "ne": func(a, b float64) bool { return a < b || a > b },
		"lt": func(a, b float64) bool { return a < b }, "le": func(a, b float64) bool { return a <= b },
		"gt": func(a, b float64) bool { return a > b }, "ge": func(a, b float64) bool { return a >= b },
		"equ": func(a, b float64) bool { return !(a < b || a > b) }, "neu": func(a, b float64) bool { return a != b },
		"ltu": func(a, b float64) bool { return !(a >= b) }, "leu": func(a, b float64) bool { return !(a > b) },
		"gtu": func(a, b float64) bool { return !(a <= b) }, "geu": func(a, b float64) bool { return !(a < b) },
		"num": func(a, b float64) bool { return a == a && b == b }, "nan": func(a, b float64) bool { return a != a || b != b },
	}[name]
	if !ok {
		p.fail("comparison %q is not known", name)
	}
	return func(x, y uint64) bool { return c(from(x), from(y)) }
}

// approx stands for the special function unit. Its tables are not public: results are the nearest binary32, which is
// within the bound that PTX states and no claim about any GPU's bits.
func approx(p *parser, in *inst) {
	t := p.lastType(in)
	if t.bits != 32 || in.has("ftz") {
		p.fail("%s is not known", in.full)
	}
	f, ok := map[string]func(float64) float64{
		"rcp": func(v float64) float64 { return 1 / v }, "sqrt": math.Sqrt, "rsqrt": func(v float64) float64 { return 1 / math.Sqrt(v) },
		"sin": math.Sin, "cos": math.Cos, "lg2": math.Log2, "ex2": math.Exp2, "tanh": math.Tanh,
	}[in.op]
	if !ok {
		p.fail("%s is not known", in.full)
	}
	p.set1(in, mufu, t, func(x uint64) uint64 { return to32(f(f32(x))) })
}

// cvtOp converts. Between floats only to nearest even, or exactly; from float to integer in every rounding, saturating.
func cvtOp(p *parser, in *inst) {
	var ts []typ
	for _, m := range in.mods {
		if t, ok := types[m]; ok {
			ts = append(ts, t)
		}
	}
	if len(ts) != 2 || in.has("ftz") || in.has("sat") || in.has("relu") {
		p.fail("%s is not known", in.full)
	}
	d, s := ts[0], ts[1]
	if d.packed {
		p.fail("%s is not known", in.full)
	}
	from, _ := codec(s)
	_, to := codec(d)
	switch {
	case !d.float && !s.float:
		p.set1(in, alu, d, func(x uint64) uint64 { return ext(x&s.mask(), s) & d.mask() })
	case d.float && !s.float:
		if !in.has("rn") {
			p.fail("%s is not known", in.full)
		}
		p.set1(in, cvt, d, func(x uint64) uint64 { return fromInt(x, s, d, to) })
	case d.float:
		if d.bits < s.bits && !in.has("rn") {
			p.fail("%s is not known", in.full)
		}
		if in.has("rzi") || in.has("rni") || in.has("rmi") || in.has("rpi") || d.bits == s.bits {
			p.fail("%s is not known", in.full)
		}
		p.set1(in, cvt, d, func(x uint64) uint64 { return to(from(x)) })
	default:
		var r func(float64) float64
		switch {
		case in.has("rzi"):
			r = math.Trunc
		case in.has("rni"):
			r = math.RoundToEven
		case in.has("rmi"):
			r = math.Floor
		case in.has("rpi"):
			r = math.Ceil
		default:
			p.fail("%s: want an integer rounding", in.full)
		}
		p.set1(in, cvt, d, func(x uint64) uint64 { return toInt(r(from(x)), d) })
	}
}

// fromInt converts an integer of type s, rounding once.
func fromInt(x uint64, s, d typ, to func(float64) uint64) uint64 {
	neg := s.signed && sext(x, s) < 0
	x &= s.mask()
	if neg {
		x = -x & s.mask()
	}
	v := float64(x)
	if d.bits != 64 && x>>53 != 0 {
		// Round to odd at 53 bits first, so that the rounding to d is the only one.
		n := bits.Len64(x) - 53
		low := x & (1<<n - 1)
		x >>= n
		if low != 0 {
			x |= 1
		}
		v = math.Ldexp(float64(x), n)
	}
	if neg {
		v = -v
	}
	return to(v)
}

// toInt saturates; a NaN gives 0.
func toInt(v float64, d typ) uint64 {
	if v != v {
		return 0
	}
	if !d.signed {
		switch {
		case v <= 0:
			return 0
		case v >= math.Ldexp(1, d.bits):
			return d.mask()
		}
		return uint64(v)
	}
	lim := math.Ldexp(1, d.bits-1)
	switch {
	case v >= lim:
		return d.mask() >> 1
	case v < -lim:
		return 1 << (d.bits - 1)
	}
	return uint64(int64(v)) & d.mask()
}
