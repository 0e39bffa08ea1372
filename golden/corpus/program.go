package corpus

// A program is what was drawn: groups of instructions that run one after the other, each followed by taking its results in.
type program struct {
	tier   int // 70, or 80: the compute capability that it needs
	groups []group
}

type group struct {
	ops    []op
	absorb int // how the results are taken in
}

// An op is one choice of the grammar. Its operands are chosen among what there is when it is written down, so that a program
// from which some are taken away is still a program.
type op struct {
	kind int // of kinds
	arg  [4]uint32
	imm  uint32
}

// draw draws a program.
func draw(r *rng, tier int) program {
	p := program{tier: tier}
	weight := 0
	for _, k := range kinds {
		if k.tier <= tier {
			weight += k.weight
		}
	}
	for range 2 + r.intN(4) {
		g := group{absorb: r.intN(absorbs)}
		for range 2 + r.intN(5) {
			n := r.intN(weight)
			for i, k := range kinds {
				if k.tier > tier {
					continue
				}
				if n -= k.weight; n < 0 {
					o := op{kind: i, imm: uint32(r.uint64())}
					for j := range o.arg {
						o.arg[j] = uint32(r.uint64())
					}
					g.ops = append(g.ops, o)
					break
				}
			}
		}
		p.groups = append(p.groups, g)
	}
	return p
}

// without gives the program with one op less; a group that has none left is gone.
func (p program) without(at, i int) program {
	q := program{tier: p.tier}
	for n, g := range p.groups {
		ops := append([]op{}, g.ops...)
		if n == at {
			ops = append(ops[:i], ops[i+1:]...)
		}
		if len(ops) > 0 {
			q.groups = append(q.groups, group{ops, g.absorb})
		}
	}
	return q
}

func (p program) ops() int {
	n := 0
	for _, g := range p.groups {
		n += len(g.ops)
	}
	return n
}
