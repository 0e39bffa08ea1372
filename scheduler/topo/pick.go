package topo

import "math/bits"

// Pick chooses k of the GPUs in free, as a mask; 0 when fewer are free. In order: as many NVLink pairs as possible among
// those chosen; as many as possible among those left, so that leftovers go first and pairs stay whole; the same two for
// GPUs near each other; the lowest indices.
func (s *Shape) Pick(free uint32, k int) uint32 {
	free &= s.All()
	n := bits.OnesCount32(free)
	switch {
	case k <= 0 || n < k:
		return 0
	case n == k:
		return free
	case s.pick != nil:
		return uint32(s.pick[k][free])
	}
	return s.search(free, k)
}

// table works out every choice of a node of up to 8 GPUs once.
func (s *Shape) table() {
	s.pick = nil
	if s.GPUs > 8 {
		return
	}
	all := int(s.All())
	s.pick = make([][]uint8, s.GPUs+1)
	for k := range s.pick {
		s.pick[k] = make([]uint8, all+1)
	}
	score := make([][2]int, all+1) // pairs inside each mask: NVLink, near
	for m := 1; m <= all; m++ {
		i := bits.TrailingZeros(uint(m))
		rest := m & (m - 1)
		score[m] = score[rest]
		score[m][0] += bits.OnesCount32(s.NVLink[i] & uint32(rest))
		score[m][1] += bits.OnesCount32(s.Near[i] & uint32(rest))
	}
	for free := 1; free <= all; free++ {
		for m := free; m > 0; m = (m - 1) & free {
			k := bits.OnesCount(uint(m))
			best := int(s.pick[k][free])
			if best == 0 || better(score, m, best, free) {
				s.pick[k][free] = uint8(m)
			}
		}
	}
}

func better(score [][2]int, a, b, free int) bool {
	x := [4]int{score[a][0], score[free&^a][0], score[a][1], score[free&^a][1]}
	y := [4]int{score[b][0], score[free&^b][0], score[b][1], score[free&^b][1]}
	for i := range x {
		if x[i] != y[i] {
			return x[i] > y[i]
		}
	}
	// Lowest indices: the first GPU in which they differ is in a.
	return (a^b)&-(a^b)&a != 0
}

// maxSets bounds exact: half of sixteen GPUs can be chosen in 12,870 ways.
const maxSets = 13000

// search is Pick for nodes of more than 8 GPUs: exact where there are few enough ways to choose, else grow.
func (s *Shape) search(free uint32, k int) uint32 {
	ways := 1
	for i := range k {
		if ways = ways * (bits.OnesCount32(free) - i) / (i + 1); ways > maxSets {
			return s.grow(free, k)
		}
	}
	return s.exact(free, k)
}

// exact tries every set of k.
func (s *Shape) exact(free uint32, k int) uint32 {
	var at []int
	for m := free; m != 0; m &= m - 1 {
		at = append(at, bits.TrailingZeros32(m))
	}
	var best uint32
	var bestScore [4]int
	choose := make([]int, k) // places in at, rising
	for i := range choose {
		choose[i] = i
	}
	for {
		var set uint32
		for _, i := range choose {
			set |= 1 << at[i]
		}
		// Sets come in the order of their lowest indices: of equals the first stays.
		if sc := s.score(set, free); best == 0 || less(bestScore, sc) {
			best, bestScore = set, sc
		}
		i := k - 1
		for i >= 0 && choose[i] == len(at)-k+i {
			i--
		}
		if i < 0 {
			return best
		}
		choose[i]++
		for j := i + 1; j < k; j++ {
			choose[j] = choose[j-1] + 1
		}
	}
}

// grow adds to each free GPU in turn the one that brings most links, and keeps the set that Pick's order puts first. It
// may miss the best by a link.
func (s *Shape) grow(free uint32, k int) uint32 {
	var best uint32
	var bestScore [4]int
	for seed := free; seed != 0; seed &= seed - 1 {
		set := seed & -seed
		for bits.OnesCount32(set) < k {
			var next uint32
			var nextScore [4]int
			for m := free &^ set; m != 0; m &= m - 1 {
				c := set | m&-m
				if sc := s.score(c, free); next == 0 || less(nextScore, sc) {
					next, nextScore = c, sc
				}
			}
			set = next
		}
		if sc := s.score(set, free); best == 0 || less(bestScore, sc) {
			best, bestScore = set, sc
		}
	}
	return best
}

func less(a, b [4]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func (s *Shape) score(set, free uint32) [4]int {
	return [4]int{pairs(s.NVLink, set), pairs(s.NVLink, free&^set), pairs(s.Near, set), pairs(s.Near, free&^set)}
}

func pairs(links []uint32, mask uint32) int {
	n := 0
	for m := mask; m != 0; m &= m - 1 {
		n += bits.OnesCount32(links[bits.TrailingZeros32(m)] & mask)
	}
	return n / 2
}

// Groups reports whether mask falls into groups of size that NVLink joins.
func (s *Shape) Groups(mask uint32, size int) bool {
	n := bits.OnesCount32(mask)
	return size <= 1 || n%size == 0 && s.PickGroups(mask, n, size) == mask
}

// PickGroups is Pick for k GPUs in groups of size that NVLink joins, as tensor-parallel groups must be; 0 when free does
// not hold as many. It takes group by group, each as Pick would, from what is joined.
func (s *Shape) PickGroups(free uint32, k, size int) uint32 {
	if size <= 1 {
		return s.Pick(free, k)
	}
	var out uint32
	for free &= s.All(); k > 0; k -= size {
		g := s.group(free, size)
		if g == 0 {
			return 0
		}
		out |= g
		free &^= g
	}
	return out
}

// group is a group of size in free that NVLink joins: from the smallest set of joined GPUs that holds one, so that larger
// sets stay whole; of equals the one with the lowest index.
func (s *Shape) group(free uint32, size int) uint32 {
	var best uint32
	least := MaxGPUs + 1
	for m := free; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		set := (s.NVLink[i] | 1<<i) & free
		n := bits.OnesCount32(set)
		if n < size || n >= least {
			continue
		}
		if g := s.Pick(set, size); g&(1<<i) != 0 && s.Joined(g) {
			best, least = g, n
		}
	}
	return best
}

// Order lists the GPUs of mask in rank order: groups of size that NVLink joins one after the other, by index in each.
func (s *Shape) Order(mask uint32, size int) []int {
	out := make([]int, 0, bits.OnesCount32(mask))
	for mask != 0 {
		g := mask
		if size > 1 {
			if j := s.group(mask, size); j != 0 {
				g = j
			}
		}
		mask &^= g
		for ; g != 0; g &= g - 1 {
			out = append(out, bits.TrailingZeros32(g))
		}
	}
	return out
}
