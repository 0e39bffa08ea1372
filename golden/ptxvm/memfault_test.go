package ptxvm

import (
	"testing"

	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

// Faults of the memory path, and which kernels show them. One that none of the others shows is what a kernel is for.
func TestMemoryFaultsAreSeenByTheirKernels(t *testing.T) {
	for _, tt := range []struct {
		name, line  string
		seen, blind []string
	}{
		{"the L1 keeps what a store has replaced", `{"v":1,"id":"a","class":"drop","where":{"sm":1,"part":2,"unit":"l1_data","lane":5},"when":{"p":1},"do":{},"seed":1}`,
			[]string{"k13_l1"}, []string{"k01_imad", "k11_smem", "k16_hbm", "k17_atomic"}},
		{"the L1 takes a line 2 KiB off for the one asked for", `{"v":1,"id":"b","class":"addr","where":{"sm":1,"part":2,"unit":"l1_tag","lane":"all"},"when":{"p":1},"do":{"addr_xor":"00000800"},"seed":1}`,
			[]string{"k13_l1"}, []string{"k01_imad", "k11_smem", "k17_atomic"}},
		{"a bit stuck in the L1", `{"v":1,"id":"c","class":"stuck","where":{"sm":1,"part":2,"unit":"l1_data","lane":5},"when":{"p":1},"do":{"or":"00000010"},"seed":1}`,
			[]string{"k13_l1"}, nil},
		{"a memory channel that fails on one pattern of six bits", `{"v":1,"id":"d","class":"trigger","where":{"sm":1,"part":3,"unit":"hbm","lane":7},"when":{"p":1,"a":["0000003f","0000000b"]},"do":{"xor":"00020000"},"seed":1}`,
			[]string{"k16_hbm"}, []string{"k01_imad", "k11_smem"}},
		{"a bit stuck in a memory channel", `{"v":1,"id":"e","class":"stuck","where":{"sm":1,"part":3,"unit":"hbm","lane":7},"when":{"p":1},"do":{"or":"00020000"},"seed":1}`,
			[]string{"k16_hbm"}, nil},
	} {
		f := one(t, tt.line)
		found := func(id string) bool {
			k, ok := kernels.Lookup(id)
			if !ok {
				t.Fatalf("no kernel %s", id)
			}
			want := ref.Block(k.ID, 3, 128, 24)
			got, d, err := runKernel(t, Config{SMs: 3, Capability: 90, SharedSM: 16 << 10, Faults: []Fault{f}}, k, 3, 128, 24, noCanary)
			if err != nil {
				t.Fatalf("%s: %s: %v", tt.name, id, err)
			}
			bad := false
			for s := range got {
				if n := differ(got[s], want); n > 0 {
					bad = true
					if s != 1 && f.Unit() != hbm {
						t.Errorf("%s: %s: SM %d: %d words differ", tt.name, id, s, n)
					}
				}
			}
			if bad && d.Hits()[f.ID] == 0 {
				t.Errorf("%s: %s is wrong, and the fault never acted", tt.name, id)
			}
			return bad
		}
		for _, id := range tt.seen {
			if !found(id) {
				t.Errorf("%s: %s does not show it", tt.name, id)
			}
		}
		for _, id := range tt.blind {
			if found(id) {
				t.Errorf("%s: %s shows it", tt.name, id)
			}
		}
	}
}

// A byte, a word and eight bytes of one place in memory are struck alike.
func TestAStuckBitOfMemoryIsTheSameForEveryWidth(t *testing.T) {
	f := one(t, `{"v":1,"id":"e","class":"stuck","where":{"sm":0,"part":0,"unit":"hbm","lane":3},"when":{"p":1},"do":{"or":"00020000"},"seed":1}`)
	d := NewDevice(Config{SMs: 1, Faults: []Fault{f}})
	w := &warp{b: &block{run: &run{dev: d}, sm: d.sms[0]}, in: &inst{}}
	for _, tt := range []struct {
		name string
		addr uint64
		n    int
		want uint64
	}{
		{"its word", 12, 4, 0x20000},
		{"its byte", 14, 1, 2},
		{"the byte before", 13, 1, 0},
		{"its half", 14, 2, 2},
		{"the other half", 12, 2, 0},
		{"eight bytes that end with it", 8, 8, 0x20000 << 32},
		{"the word after", 16, 4, 0},
		{"the same word of the next bank", lineBytes + 12, 4, 0},
		{"the same word of the same bank", 4*lineBytes + 12, 4, 0x20000},
	} {
		if got := w.fromMemory(tt.addr, tt.n, 0); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
	if n := d.Hits()["e"]; n != 5 {
		t.Errorf("%d hits", n)
	}
}
