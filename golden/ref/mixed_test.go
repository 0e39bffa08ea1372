package ref

import (
	"math/bits"
	"testing"
)

// tables is what LOP3 gives for table t: bit 4a + 2b + c of the table decides each bit.
func tables(t uint32, a, b, c uint32) uint32 {
	var r uint32
	for bit := range 32 {
		i := a>>bit&1<<2 | b>>bit&1<<1 | c>>bit&1
		r |= t >> i & 1 << bit
	}
	return r
}

func TestLOP3IsItsTables(t *testing.T) {
	for seed := range uint64(20) {
		x := []uint32{Input(seed, 0), Input(seed, 1), Input(seed, 2), Input(seed, 3)}
		i := uint32(seed) * 7
		var u uint32
		for table := range uint32(256) {
			u = bits.RotateLeft32(u, 1) ^ tables(table, x[1], x[2]^i*golden, x[3])
		}
		want := bits.RotateLeft32(x[0]^u, 9)
		lop3(x, i)
		if x[3] != want {
			t.Fatalf("seed %d: %08x, want %08x", seed, x[3], want)
		}
	}
}
