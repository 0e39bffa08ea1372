package ptxvm

import (
	"encoding/binary"
	"testing"

	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

func words(ws ...uint32) []byte {
	b := make([]byte, 4*len(ws))
	for i, w := range ws {
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
	return b
}

type canary struct{ slot, thread, step, mask uint32 }

var noCanary = canary{slot: 0xFFFFFFFF}

// runKernel runs a golden kernel as the worker does, with keyed inputs, a claim table and one block an SM. It gives the un-keyed output of each slot, nil for one that no block claimed.
func runKernel(t testing.TB, cfg Config, k kernels.Kernel, seed uint64, threads, steps int, c canary) ([][]uint32, *Device, error) {
	t.Helper()
	e := parsed(t, k)
	d := NewDevice(cfg)
	slots, n, launch := cfg.SMs, k.Words*threads, uint32(7)
	in, poison := make([]uint32, slots*n), make([]uint32, slots*n)
	for s := range slots {
		for i := range n {
			in[s*n+i] = ref.Input(seed, i) ^ ref.Mix(uint32(s), uint32(i), launch)
			poison[s*n+i] = 0xDEADBEEF + uint32(i)
		}
	}
	addr := func(ws []uint32) uint64 {
		a := d.Alloc(4 * len(ws))
		if err := d.Write(a, words(ws...)); err != nil {
			t.Fatal(err)
		}
		return a
	}
	out, claim, where := addr(append(poison, make([]uint32, slots*k.Behind(threads))...)), addr(make([]uint32, slots+1)), addr(make([]uint32, slots*16))
	params := binary.LittleEndian.AppendUint64(nil, out)
	for _, a := range []uint64{addr(in), claim, where} {
		params = binary.LittleEndian.AppendUint64(params, a)
	}
	params = append(params, words(uint32(slots), uint32(slots), uint32(steps), launch, c.slot, c.thread, c.step, c.mask)...)
	if err := d.Launch(e, 2*slots, threads, cfg.SharedSM*3/4, params); err != nil {
		return nil, d, err
	}
	raw := make([]byte, 4*slots*n)
	if err := d.Read(out, raw); err != nil {
		t.Fatal(err)
	}
	done := make([]byte, 4*slots*16)
	if err := d.Read(where, done); err != nil {
		t.Fatal(err)
	}
	got := make([][]uint32, slots)
	for s := range slots {
		if binary.LittleEndian.Uint32(done[4*(s*16+3):]) != 0x600DD00D {
			continue
		}
		for i := range n {
			got[s] = append(got[s], binary.LittleEndian.Uint32(raw[4*(s*n+i):])^ref.Mix(uint32(s), uint32(i), launch))
		}
	}
	return got, d, nil
}

var entries = map[string]*Entry{}

func parsed(t testing.TB, k kernels.Kernel) *Entry {
	t.Helper()
	if entries[k.ID] == nil {
		m, err := Parse(k.Source())
		if err != nil {
			t.Fatal(err)
		}
		entries[k.ID] = m.Entries[k.ID]
	}
	return entries[k.ID]
}

// few is fewer steps for kernels whose steps are long.
func few(t testing.TB, k kernels.Kernel, steps int) int {
	return max(1, min(steps, steps*20_000/len(parsed(t, k).insts)/10))
}

func differ(got, want []uint32) int {
	n := 0
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			n++
		}
	}
	return n
}

// Every kernel gives, on every SM, what the reference says: under the mildest and under the most hostile machine, with
// the race detector on.
func TestKernelsAgreeWithTheReference(t *testing.T) {
	for _, k := range kernels.All() {
		t.Run(k.ID, func(t *testing.T) {
			steps := few(t, k, 16)
			for seed := range uint64(4) {
				want := ref.Block(k.ID, seed, 128, steps)
				cfg := Config{SMs: 3, Capability: max(min([]int{80, 90}[seed%2], max(k.MaxCC, 80)), k.MinCC), Seed: seed, Hostile: seed > 1, Races: seed > 0, SharedSM: 16 << 10}
				got, _, err := runKernel(t, cfg, k, seed, 128, steps, noCanary)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for s := range got {
					if n := differ(got[s], want); n > 0 {
						t.Errorf("seed %d SM %d: %d of %d words differ", seed, s, n, len(want))
					}
				}
			}
		})
	}
}

// The canary strikes where it is told to, and nowhere else.
func TestCanaryIsSeenAtItsSMAndThread(t *testing.T) {
	for _, k := range kernels.All() {
		steps := few(t, k, 24)
		want := ref.Block(k.ID, 1, 128, steps)
		got, _, err := runKernel(t, Config{SMs: 3, Capability: 90, SharedSM: 16 << 10}, k, 1, 128, steps, canary{slot: 1, thread: 77, step: uint32(min(3, steps-1)), mask: 1 << 9})
		if err != nil {
			t.Fatal(err)
		}
		for s := range got {
			n := differ(got[s], want)
			if (n > 0) != (s == 1) {
				t.Errorf("%s: SM %d: %d words differ", k.ID, s, n)
			}
		}
		if first := differ(got[1][77:78], want[77:78]); first == 0 && differ(got[1], want) < k.Words/2 {
			t.Errorf("%s: the canary faded", k.ID)
		}
	}
}
