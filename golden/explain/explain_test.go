package explain

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ptxvm"
	"github.com/assay-gpu/assay/golden/ref"
)

// small is large enough for a warp in every partition.
var small = golden.Reduced

// wrong gives the words of a block after its first wrong step, as a GPU with the stuck bit leaves them.
func wrong(t *testing.T, id string, part int, s golden.Stuck, seed int) Question {
	t.Helper()
	k, ok := kernels.Lookup(id)
	if !ok {
		t.Fatal(id)
	}
	m, err := ptxvm.Parse(k.Source())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fault(part, s)
	if err != nil {
		t.Fatal(err)
	}
	q := Question{Kernel: id, Size: small, Seed: seed, Capability: 90}
	for q.Steps = 1; q.Steps <= 16; q.Steps++ {
		if q.Got, _, err = run(m.Entries[id], k, q, 1<<24, f); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(q.Got, ref.Block(id, uint64(seed), small.Threads, q.Steps)) {
			return q
		}
	}
	t.Fatalf("%s: bit %d of %s stuck at %d shows in no step", id, s.Bit, s.Unit, s.At)
	return q
}

func TestAStuckBitIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kernel string
		part   int
		stuck  golden.Stuck
	}{
		{"one lane of a tensor core, four products deep", "k18_mma_f16", 1, golden.Stuck{Unit: "tensor16", Lane: "9", Bit: 10, At: 1}},
		{"all lanes of it", "k18_mma_f16", 2, golden.Stuck{Unit: "tensor16", Lane: "all", Bit: 3, At: 0}},
		{"an integer product", "k01_imad", 3, golden.Stuck{Unit: "imad", Lane: "31", Bit: 31, At: 0}},
		{"a fused multiply-add", "k04_ffma", 0, golden.Stuck{Unit: "fma32", Lane: "0", Bit: 22, At: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Explain(t.Context(), wrong(t, tt.kernel, tt.part, tt.stuck, 5))
			if err != nil || got == nil || *got != tt.stuck {
				t.Errorf("%+v, %v; want %+v", got, err, tt.stuck)
			}
		})
	}
}

func TestWhatNoStuckBitExplains(t *testing.T) {
	q := wrong(t, "k04_ffma", 0, golden.Stuck{Unit: "fma32", Lane: "0", Bit: 22, At: 1}, 5)
	two := q
	two.Got = slices.Clone(q.Got)
	two.Got[40] ^= 1 // a thread of another partition
	far := q
	far.Steps = maxSteps + 1
	for name, q := range map[string]Question{"two partitions": two, "too far from the start": far} {
		if got, err := Explain(t.Context(), q); got != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	odd := q
	odd.Got = slices.Clone(q.Got)
	odd.Got[0] ^= 0x00100100 // two bits more in the wrong lane
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got, err := Explain(ctx, odd); got != nil || err != nil {
		t.Errorf("words that no stuck bit gives: %+v, %v", got, err)
	}
	cancel()
	if _, err := Explain(ctx, odd); err == nil {
		t.Error("it went on after its time")
	}
}
