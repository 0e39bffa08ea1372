package netlist

// Redundant reports whether it is proven that no operands show the fault. It sets what showing the fault needs - the pin at
// the other value, and every gate on the one way out open - and follows what that makes of other nets, forwards and
// backwards; a net that must be 0 and 1 is the proof. That proves many such faults and not all.
func (n *Netlist) Redundant(f Fault) bool {
	p := prover{n: n, v: map[net]bool{}}
	x := f.Gate
	if f.Pin != Result {
		x = n.from(int(f.Gate), f.Pin)
	}
	if !p.set(x, !f.Value) {
		return true
	}
	at := f.Gate
	if f.Pin != Result && !p.open(int(f.Gate), x) {
		return true
	}
	for n.single(at) {
		to := n.fans[at][0]
		if !p.open(int(to), at) {
			return true
		}
		at = to
	}
	return !n.isOut[at] && len(n.fans[at]) == 0
}

// A prover holds nets that must have a value.
type prover struct {
	n    *Netlist
	v    map[net]bool
	work []net
}

// open sets the other operand of a gate so that a change of x passes.
func (p *prover) open(g int, x net) bool {
	other := p.n.a[g]
	if other == x {
		other = p.n.b[g]
	}
	switch p.n.op[g] {
	case opAnd:
		return p.set(other, true)
	case opOr:
		return p.set(other, false)
	}
	return true
}

// set gives a net a value and follows it; false when that cannot be.
func (p *prover) set(x net, v bool) bool {
	if !p.put(x, v) {
		return false
	}
	for len(p.work) > 0 {
		x := p.work[len(p.work)-1]
		p.work = p.work[:len(p.work)-1]
		if int(x) >= p.n.ins+2 && !p.gate(int(x)) {
			return false
		}
		for _, to := range p.n.fans[x] {
			if !p.gate(int(to)) {
				return false
			}
		}
	}
	return true
}

func (p *prover) put(x net, v bool) bool {
	if x <= one {
		return v == (x == one)
	}
	if old, ok := p.v[x]; ok {
		return old == v
	}
	p.v[x] = v
	p.work = append(p.work, x)
	return true
}

func (p *prover) get(x net) (v, known bool) {
	if x <= one {
		return x == one, true
	}
	v, known = p.v[x]
	return v, known
}

// gate follows what is known of one gate's nets.
func (p *prover) gate(g int) bool {
	n := p.n
	x, y := n.a[g], n.b[g]
	a, ka := p.get(x)
	b, kb := p.get(y)
	o, ko := p.get(net(g))
	switch n.op[g] {
	case opNot:
		return (!ka || p.put(net(g), !a)) && (!ko || p.put(x, !o))
	case opXor:
		switch {
		case ka && kb:
			return p.put(net(g), a != b)
		case ka && ko:
			return p.put(y, a != o)
		case kb && ko:
			return p.put(x, b != o)
		}
		return true
	}
	// An OR is an AND of opposites.
	w := n.op[g] == opOr
	switch {
	case ka && a == w || kb && b == w:
		if !p.put(net(g), w) {
			return false
		}
	case ka && kb:
		if !p.put(net(g), !w) {
			return false
		}
	}
	if ko && o != w {
		return p.put(x, !w) && p.put(y, !w)
	}
	if ko {
		if ka && a != w && !p.put(y, w) {
			return false
		}
		if kb && b != w && !p.put(x, w) {
			return false
		}
	}
	return true
}
