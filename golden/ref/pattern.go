package ref

// Patterns is how many patterns there are for copies.
const Patterns = 4

// Pattern is word i of a buffer, as golden/kernels/k21_copy.cu makes it too. Every pattern depends on the whole offset, so
// that a page or a line that lands elsewhere is wrong in all its words: 0 is random, 1 turns every bit over from one word to
// the next, 2 is the word's own offset in bytes, 3 walks one bit through the 32 words of a line over a random ground.
func Pattern(kind int, key, i uint32) uint32 {
	switch kind {
	case 0:
		return Mix(0, i, key)
	case 1:
		h := Mix(1, i>>1, key)
		if i&1 != 0 {
			return ^h
		}
		return h
	case 2:
		return i*4 + key
	}
	return Mix(3, i>>5, key) ^ 1<<(i&31)
}
