package scheduler

import "slices"

// maxSlack bounds tightest: with more to lose than this, on leaves of more than 64 free nodes, the greedy choice stands.
const maxSlack = 64

// A size is all bins of one capacity, as a class of tightest.
type size struct {
	lo, hi int // in kinds.list
	n      int // bins
	off    int // how much a bin taken, or for larger ones left out, costs of the slack
	more   bool
}

// tightest picks n bins that hold need with the fewest nodes under them, then the fewest wholly free ones: exactly.
//
// The n largest bins hold need plus some slack. Any other choice leaves out some of those and takes smaller ones instead.
// Measured from the capacity of the n-th, a larger bin left out costs its difference of slack, and so does a smaller one
// taken; those of the n-th's own capacity cost none and make the number come out right. The slack is less than one bin
// holds, so a table over (slack used, bins taken more than left out) is small whatever the size of the fleet.
func (k *kinds) tightest(need, n int, t *table) []pick {
	slack, at := -need, 0
	for left := n; left > 0; at++ {
		m := min(left, k.list[at].n)
		left -= m
		slack += m * k.list[at].cap
	}
	pivot := k.list[at-1].cap
	if slack > maxSlack {
		return nil
	}
	var above, equal []pick // taken anyway; of the pivot's capacity
	var sizes []size
	certain := 0 // bins in above
	for lo := 0; lo < len(k.list); {
		z := size{lo: lo, off: k.list[lo].cap - pivot, more: k.list[lo].cap > pivot}
		hi := lo
		for ; hi < len(k.list) && k.list[hi].cap == k.list[lo].cap; hi++ {
			z.n += k.list[hi].n
		}
		z.hi = hi
		switch {
		case z.off == 0:
			equal = k.list[lo:hi]
		case z.off > slack:
			above = append(above, k.list[lo:hi]...)
			certain += z.n
		case z.off >= -slack:
			z.off = max(z.off, -z.off)
			sizes = append(sizes, z)
			if z.more {
				certain += z.n // as long as none is left out
			}
		}
		lo = hi
	}
	t.reset(slack, k.list, sizes)
	t.fill()
	return t.best(above, equal, n-certain)
}

// A table is tightest's: for each class in turn the cheapest way to every state.
type table struct {
	list  []pick
	sizes []size
	slack int
	width int // states of one row of slack: -slack … slack bins taken more than left out
	cost  []int64
	next  []int64
	how   []uint8 // by class and state: how many bins off the usual brought the state about
}

const unreachable = int64(1) << 62

// reset makes the table ready for a choice, in the room that it has.
func (t *table) reset(slack int, list []pick, sizes []size) {
	t.list, t.sizes, t.slack, t.width = list, sizes, slack, 2*slack+1
	states := (slack + 1) * t.width
	t.cost = slices.Grow(t.cost[:0], states)[:states]
	t.next = slices.Grow(t.next[:0], states)[:states]
	t.how = slices.Grow(t.how[:0], states*len(sizes))[:states*len(sizes)] // only what fill has written is read
	for i := range t.cost {
		t.cost[i] = unreachable
	}
	t.cost[slack] = 0
}

func (t *table) fill() {
	var price []int64
	for i, z := range t.sizes {
		next, how := t.next, t.how[i*len(t.cost):(i+1)*len(t.cost)]
		price = t.prices(price[:0], z)
		for i := range next {
			next[i] = unreachable
		}
		for used := range t.slack + 1 {
			// Each bin off the usual costs slack, so no more are off than slack is used.
			for net := t.slack - used; net <= t.slack+used; net++ {
				c := t.cost[used*t.width+net]
				if c == unreachable {
					continue
				}
				for m := range price {
					u, e := used+m*z.off, net+m
					if z.more {
						e = net - m
					}
					if u > t.slack {
						break
					}
					if s := u*t.width + e; c+price[m] < next[s] {
						next[s], how[s] = c+price[m], uint8(m)
					}
				}
			}
		}
		t.cost, t.next = next, t.cost
	}
}

// price is a bin's nodes, and its being wholly free where those are equal.
func price(b bin) int64 { return int64(b.nodes)<<24 | int64(one(b.broken)) }

// prices is what class z costs with m bins off the usual: all less m of the larger, m of the smaller, the cheapest each.
func (t *table) prices(out []int64, z size) []int64 {
	most := min(z.n, t.slack/z.off)
	out = append(out, make([]int64, most+1)...)
	if z.more {
		// Left out are the dearest, which come last.
		for _, p := range t.list[z.lo:z.hi] {
			out[0] += price(p.bin) * int64(p.n)
		}
	}
	m := 1
	for i := range z.hi - z.lo {
		p := t.list[z.lo+i]
		if z.more {
			p = t.list[z.hi-1-i]
		}
		for j := 0; j < p.n && m <= most; j++ {
			out[m] = out[m-1] + price(p.bin)
			if z.more {
				out[m] = out[m-1] - price(p.bin)
			}
			m++
		}
	}
	return out
}

// best is the cheapest state with as many bins of the pivot's capacity as it needs, and the picks that made it.
func (t *table) best(above, equal []pick, need int) []pick {
	have := 0
	for _, p := range equal {
		have += p.n
	}
	first := make([]int64, have+1)
	i := 1
	for _, p := range equal {
		for range p.n {
			first[i] = first[i-1] + price(p.bin)
			i++
		}
	}
	state, least, count := -1, unreachable, 0
	for s, c := range t.cost {
		if m := need - (s%t.width - t.slack); c != unreachable && m >= 0 && m <= have && c+first[m] < least {
			state, least, count = s, c+first[m], m
		}
	}
	if state < 0 {
		return nil
	}
	out := append(above, cheapest(equal, count)...)
	for i := len(t.sizes) - 1; i >= 0; i-- {
		z := t.sizes[i]
		m := int(t.how[i*len(t.cost)+state])
		state -= m * z.off * t.width
		if z.more {
			state += m
			out = append(out, cheapest(t.list[z.lo:z.hi], z.n-m)...)
		} else {
			state -= m
			out = append(out, cheapest(t.list[z.lo:z.hi], m)...)
		}
	}
	return out
}

// cheapest is the first n bins of ps.
func cheapest(ps []pick, n int) []pick {
	var out []pick
	for _, p := range ps {
		if n == 0 {
			break
		}
		p.n = min(p.n, n)
		n -= p.n
		out = append(out, p)
	}
	return out
}
