package corpus

// A rng is splitmix64 (Steele, Lea, Flood, 2014). It is our own so that no other library's next version draws other programs.
type rng struct{ s uint64 }

func (r *rng) uint64() uint64 {
	r.s += 0x9E3779B97F4A7C15
	z := r.s
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// intN is below n; the bias of a 64-bit remainder is of no account here.
func (r *rng) intN(n int) int { return int(r.uint64() % uint64(n)) }

// seeded gives the generator of one candidate of a corpus's seed.
func seeded(seed uint64, candidate int) *rng {
	r := &rng{seed}
	r.s = r.uint64() ^ uint64(candidate)*0xD1B54A32D192ED03
	return r
}
