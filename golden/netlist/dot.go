package netlist

import "fmt"

// Dot is one element of a tensor core's product: c + Σ a·b over 16 pairs of binary16 with binary32 c, as the Hopper
// generation sums: every term is cut to 25 fraction bits below the largest exponent, the sum is exact, and the result is cut
// to binary32. Infinities and NaN are not modelled: their exponent counts as any other.
func Dot() *Netlist {
	const pairs, frac, field, width = 16, 25, 27, 33
	b := newBuilder("dot16", "tensor dot product of 16 f16 pairs on an f32, with its aligner")
	var x, y [pairs]bus
	for i := range pairs {
		x[i] = b.input(fmt.Sprintf("a%d", i), 16)
	}
	for i := range pairs {
		y[i] = b.input(fmt.Sprintf("b%d", i), 16)
	}
	c := b.unpack(b.input("c", 32), 23)

	b.in("multiply")
	type term struct {
		sign net
		mag  bus // its leading bit, when it has one, below bit 27
		exp  bus // plus 127
	}
	terms := []term{{c.sign, join(make(bus, frac-23), c.sig), c.exp}}
	most := c.exp
	var exps []bus
	for i := range pairs {
		p, q := b.unpack(x[i], 10), b.unpack(y[i], 10)
		e := b.plus(b.plus(p.exp.sized(8), q.exp.sized(8)), constant(127-30, 8))
		terms = append(terms, term{b.xor(p.sign, q.sign), join(make(bus, field-22), b.product(p.sig, q.sig, 22, nil)), e})
		exps = append(exps, b.gated(b.not(b.or(p.zero, q.zero)), e)) // a product of nothing has no say
	}
	b.in("largest")
	for len(exps) > 1 {
		var next []bus
		for i := 0; i < len(exps); i += 2 {
			m, _ := b.larger(exps[i], exps[i+1])
			next = append(next, m)
		}
		exps = next
	}
	most, _ = b.larger(exps[0], most)

	b.in("align")
	cols := make([][]net, width)
	for _, t := range terms {
		far, _ := b.minus(most, t.exp)
		mag, _ := b.right(t.mag.sized(field), far[:5])
		mag = b.gated(b.not(b.anyOf(far[5:])), mag)
		for i := range width {
			bit := t.sign
			if i < field {
				bit = b.xor(mag[i], t.sign)
			}
			cols[i] = append(cols[i], bit)
		}
		cols[0] = append(cols[0], t.sign)
	}
	b.in("add")
	sum := b.columns(cols)
	negative := sum[width-1]
	mag := b.plusCarry(b.flipIf(negative, sum[:width-1]), negative)

	b.in("normalise")
	lead, some := b.leading(mag)
	const wide = 9
	room := b.plus(most.sized(wide), constant(5, wide))
	_, enough := b.minus(room, lead.sized(wide))
	by := b.pick(enough, room[:len(lead)], lead)
	mag = b.normalised(mag, by)
	top := b.plus(most.sized(wide), constant(6, wide))
	exp, _ := b.minus(top, by.sized(wide))
	exp = b.gated(mag[31], exp)
	over := b.or(exp[8], b.allOf(exp[:8]))
	out := b.pick(over, join(mag[8:31], exp[:8]), join(make(bus, 23), constant(255, 8)))
	b.output("d", append(out, b.and(negative, some)))
	return b.done()
}
