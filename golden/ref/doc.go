// Package ref computes what every golden kernel must give, on a CPU, from first principles: it evaluates the kernels'
// Feistel chains in IEEE arithmetic written out in integers (no double rounding, no fusing by the compiler) and sums the
// tensor products in integers, where the operands make them exact. It shares no arithmetic with the PTX machine.
package ref

// Input is word index of the block that a seed gives, before the key.
func Input(seed uint64, index int) uint32 {
	// splitmix64 (Steele, Lea, Flood, 2014) over seed and index.
	z := seed*0x9E3779B97F4A7C15 + uint64(index)*0xD1B54A32D192ED03 + 0x632BE59BD9B4E019
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return uint32((z ^ z>>31) >> 32)
}

// Mix is the key of word index of a slot in a launch: what is loaded and stored is the word xor its key, so that no SM's
// copy of a word stands for another's. golden.h has the same function for the device.
func Mix(slot, index, launch uint32) uint32 {
	x := index*0x9E3779B9 ^ slot*0x85EBCA6B ^ launch*0xC2B2AE35
	x ^= x >> 16
	x *= 0x7FEB352D
	x ^= x >> 15
	x *= 0x846CA68B
	return x ^ x>>16
}

// A block is the state of one thread block: words of each thread, word-major, as the kernels store them.
type block struct {
	threads int
	w       []uint32
}

func newBlock(seed uint64, words, threads int) block {
	b := block{threads, make([]uint32, words*threads)}
	for i := range b.w {
		b.w[i] = Input(seed, i)
	}
	return b
}

// thread copies the state of thread t into x.
func (b block) thread(t int, x []uint32) {
	for w := range x {
		x[w] = b.w[w*b.threads+t]
	}
}

func (b block) store(t int, x []uint32) {
	for w := range x {
		b.w[w*b.threads+t] = x[w]
	}
}
