package ref

import "math/bits"

// A format is a binary interchange format of IEEE 754 up to 32 bits wide.
type format struct {
	exp, man uint   // bits of the exponent and of the fraction
	nan      uint32 // the one NaN that NVIDIA's units give
}

var (
	binary32 = format{8, 23, 0x7FFFFFFF}
	binary16 = format{5, 10, 0x7FFF}
	bfloat16 = format{8, 7, 0x7FFF}
)

func (f format) inf() uint32  { return 1<<(f.exp+f.man) - 1<<f.man }
func (f format) sign() uint32 { return 1 << (f.exp + f.man) }

// split gives sign, exponent and significand of a finite number: the value is sig · 2^(e - bias - man).
func (f format) split(x uint32) (neg bool, e int, sig uint64) {
	neg, e, sig = x&f.sign() != 0, int(x&f.inf()>>f.man), uint64(x&(1<<f.man-1))
	if e == 0 {
		return neg, 1, sig
	}
	return neg, e, sig | 1<<f.man
}

// fma is a·b + c, rounded once to nearest even, subnormals kept.
func (f format) fma(a, b, c uint32) uint32 {
	inf, mag := f.inf(), f.sign()-1
	if a&mag > inf || b&mag > inf || c&mag > inf {
		return f.nan
	}
	psign := (a ^ b) & f.sign()
	if a&mag == inf || b&mag == inf {
		if a&mag == 0 || b&mag == 0 || c&mag == inf && c&f.sign() != psign {
			return f.nan
		}
		return psign | inf
	}
	if c&mag == inf {
		return c
	}
	_, ea, sa := f.split(a)
	_, eb, sb := f.split(b)
	cneg, ec, sc := f.split(c)
	pneg, p := psign != 0, sa*sb
	if p == 0 && sc == 0 {
		if pneg && cneg {
			return f.sign()
		}
		return 0
	}
	if p == 0 {
		return c
	}
	bias := 1<<(f.exp-1) - 1
	// Both as significand · 2^exponent with the leading bit at 61: one bit of room for the sum, many below for the sticky one.
	ep, ecu := ea+eb-2*bias-2*int(f.man), ec-bias-int(f.man)
	n := bits.LeadingZeros64(p) - 2
	p, ep = p<<n, ep-n
	if sc == 0 {
		return f.round(pneg, p, ep)
	}
	n = bits.LeadingZeros64(sc) - 2
	s, es := sc<<n, ecu-n
	// big is the one of larger magnitude's exponent.
	bneg, big, eb2, lneg, little, el := pneg, p, ep, cneg, s, es
	if es > ep || es == ep && s > p {
		bneg, big, eb2, lneg, little, el = cneg, s, es, pneg, p, ep
	}
	little = shiftSticky(little, uint(eb2-el))
	if bneg == lneg {
		return f.round(bneg, big+little, eb2)
	}
	if big == little {
		return 0
	}
	return f.round(bneg, big-little, eb2)
}

// shiftSticky is x >> n with the lowest bit set when any bit was lost.
func shiftSticky(x uint64, n uint) uint64 {
	if n == 0 {
		return x
	}
	if n > 63 {
		if x == 0 {
			return 0
		}
		return 1
	}
	y := x >> n
	if y<<n != x {
		y |= 1
	}
	return y
}

// round gives ±sig · 2^e, sig not zero, in the format, to nearest even.
func (f format) round(neg bool, sig uint64, e int) uint32 {
	bias := 1<<(f.exp-1) - 1
	top := 63 - bits.LeadingZeros64(sig)
	field := top + e + bias // the biased exponent the number would have
	keep := int(f.man)
	if field < 1 {
		keep += field - 1
		field = 0
	}
	// Bits below the last one kept.
	drop := top - keep
	var m uint64
	switch {
	case drop <= 0:
		m = sig << -drop
	case drop > 63:
		m = 0
	default:
		m = sig >> drop
		rest, half := sig&(1<<drop-1), uint64(1)<<(drop-1)
		if rest > half || rest == half && m&1 == 1 {
			m++
		}
	}
	// The fraction's carry runs into the exponent, which is what rounding up to the next binade is.
	var out uint32
	if field == 0 {
		out = uint32(m)
	} else {
		out = uint32(field)<<f.man + uint32(m-1<<f.man)
	}
	if out >= f.inf() {
		out = f.inf()
	}
	if neg {
		out |= f.sign()
	}
	return out
}
