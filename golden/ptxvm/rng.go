package ptxvm

// A rng is splitmix64 (Steele, Lea, Flood, 2014): all that is random in a device, from its seed.
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

func (r *rng) float64() float64 { return float64(r.uint64()>>11) / (1 << 53) }

func shuffled[T any](r *rng, in []T) []T {
	out := append([]T{}, in...)
	for i := len(out) - 1; i > 0; i-- {
		j := r.intN(i + 1)
		out[i], out[j] = out[j], out[i]
	}
	return out
}
