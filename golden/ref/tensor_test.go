package ref

import "testing"

// Tiles of which one cancels another hide faults of the multiplier: nothing may hold (A, B) and (-A, B), or a golden
// product and its opposite.
func TestNoTileCancelsAnother(t *testing.T) {
	type key [16]int32
	rows, products := map[key]int{}, map[[8]int64]int{}
	n := 0
	step := mmaF16
	for seed := range uint64(8) {
		if seed == 4 {
			step = mmaBF16
		}
		var x [10][32]uint32
		for w := range x {
			for l := range x[w] {
				x[w][l] = Input(seed, w*32+l)
			}
		}
		for i := range 64 {
			step(&x, uint32(i), func(m *tile) {
				n++
				var neg key
				for k := range 16 {
					neg[k] = -m.a[0][k]
				}
				rows[m.a[0]]++
				if rows[neg] > 0 {
					t.Fatalf("seed %d step %d: a row of A and its opposite", seed, i)
				}
				var p, q [8]int64
				for c := range 8 {
					for k := range 16 {
						p[c] += int64(m.a[0][k]) * int64(m.b[k][c])
					}
					q[c] = -p[c]
				}
				products[p]++
				if products[q] > 0 {
					t.Fatalf("seed %d step %d: a product and its opposite", seed, i)
				}
			})
		}
	}
	if n != 8*64*4 || len(rows) != n || len(products) != n {
		t.Errorf("%d tiles, %d different rows, %d different products", n, len(rows), len(products))
	}
}

// exactFloat panics where the data would break its own exactness rule; it never does.
func TestTensorSumsStayExact(t *testing.T) {
	for seed := range uint64(16) {
		Block("k18_mma_f16", seed, 32, 256)
		Block("k18b_mma_bf16", seed, 32, 256)
	}
}
