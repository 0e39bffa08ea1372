package scheduler

import "slices"

// A pick is phase four of Place: so many bins of one kind.
type pick struct {
	bin
	key uint64
	n   int
}

// kinds counts bins by what they hold: most first, then fewest nodes, unbroken first. Bins of a kind are worth the same.
type kinds struct{ list []pick }

// key orders bins: a bin holds fewer than 2^20 lumps and 2^40 nodes.
func key(b bin) uint64 { return uint64(1<<20-b.cap)<<42 | uint64(b.nodes)<<1 | uint64(one(b.broken)) }

func (k *kinds) add(b bin) { k.addN(b, 1) }

func (k *kinds) addN(b bin, n int) {
	want := key(b)
	if last := len(k.list) - 1; last < 0 || k.list[last].key < want {
		k.list = append(k.list, pick{b, want, n})
		return
	}
	lo, hi := 0, len(k.list)
	for lo < hi {
		if mid := (lo + hi) / 2; k.list[mid].key < want {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(k.list) && k.list[lo].key == want {
		k.list[lo].n += n
		return
	}
	k.list = slices.Insert(k.list, lo, pick{b, want, n})
}

// addAll adds the bins of leaves lo ≤ l < hi and returns how many lumps they hold.
func (k *kinds) addAll(a *ask, lo, hi int32) (total int) {
	// Most bins are leaves of at most 64 nodes that hold as many lumps as nodes: these are counted in a table.
	var plain [cellNodes + 1][2]int32
	for l := lo; l < hi; {
		b, next := a.bin(l)
		if l = next; b.cap == 0 {
			continue
		}
		total += b.cap
		if b.cap == b.nodes && b.cap <= cellNodes {
			plain[b.cap][one(b.broken)]++
		} else {
			k.add(b)
		}
	}
	for c := cellNodes; c > 0; c-- {
		for broken, n := range plain[c] {
			if n > 0 {
				k.addN(bin{c, c, broken == 1}, int(n))
			}
		}
	}
	return total
}

// fewest is the least number of bins that hold need lumps, all together at least as many: the largest ones.
func (k *kinds) fewest(need int) int {
	n := 0
	for _, p := range k.list {
		if p.cap*p.n >= need {
			return n + (need+p.cap-1)/p.cap
		}
		n += p.n
		need -= p.cap * p.n
	}
	return n
}

// choose picks n bins, the fewest that hold need: those with the fewest nodes left over, then with the fewest wholly free.
// A gang that wants to be spread gets the largest.
//
// Since n is the fewest, no bin can be left out, so what is left over in all is less than one bin holds. That makes the
// search small: see tightest, which has room for it.
func (k *kinds) choose(need, n int, spread bool, room *table) []pick {
	if spread {
		return k.largest(n)
	}
	quick := k.greedy(need, n)
	if perfect(quick, need) {
		return quick
	}
	if best := k.tightest(need, n, room); best != nil {
		return best
	}
	return quick
}

// largest picks the n largest bins.
func (k *kinds) largest(n int) []pick {
	var out []pick
	for _, p := range k.list {
		if n == 0 {
			break
		}
		p.n = min(p.n, n)
		n -= p.n
		out = append(out, p)
	}
	return out
}

// greedy picks the largest bins, and for the last the tightest that holds the rest.
func (k *kinds) greedy(need, n int) []pick {
	out := k.largest(n - 1)
	for _, p := range out {
		need -= p.cap * p.n
	}
	for i := len(k.list) - 1; i >= 0; i-- {
		p := k.list[i]
		if p.cap < need {
			continue
		}
		if i < len(out) {
			if p.n == out[i].n {
				continue
			}
			out[i].n++
			return out
		}
		p.n = 1
		return append(out, p)
	}
	return out
}

// perfect reports whether nothing could be better than ps: every node under its bins is taken, and none was wholly free.
func perfect(ps []pick, need int) bool {
	lumps := 0
	for _, p := range ps {
		if p.broken || p.nodes*ps[0].cap != ps[0].nodes*p.cap {
			return false
		}
		lumps += p.cap * p.n
	}
	return lumps == need
}

// smallest picks bins with the least room until they hold need; nil when all together do not.
func (k *kinds) smallest(need int) []pick {
	var out []pick
	for i := len(k.list) - 1; i >= 0 && need > 0; i-- {
		p := k.list[i]
		m := min(p.n, (need+p.cap-1)/p.cap)
		need -= m * p.cap
		p.n = m
		out = append(out, p)
	}
	if need > 0 {
		return nil
	}
	return out
}
