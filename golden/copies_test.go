package golden

import (
	"math"
	"strings"
	"testing"
)

// withCopies is a result of nothing but copies, which passes.
func withCopies() Result {
	return Result{GPU: Device{UUID: "GPU-1", Capability: 90, SMs: 2}, Seconds: 1, Stages: []Stage{{
		Kernel: "k21_h2d", Digest: "d1", Seed: 3, Canary: Canary{SM: NoSM, Thread: 64, Tried: true, Seen: true},
		Copy: &Copy{Copies: 7, Verified: 7, Rates: []Rate{{Direction: HostToDevice, Median: 50e9, Worst: 49e9, Samples: 9}}},
	}}}
}

func TestJudgeOfCopies(t *testing.T) {
	trusted := Grades{Records: []Record{prod(Record{})}}
	bad := func(r *Result) {
		s := &r.Stages[0]
		s.Copy.Verified, s.Copy.Wrong = 6, &CopyMismatch{Direction: HostToDevice, Words: 2, Bytes: 4096, First: 128, Bits: 0x400, Reread: true, Inputs: true}
		s.Retests = []Rerun{{Seed: 3, Wrong: []int{NoSM}}, {Seed: 3, Wrong: []int{NoSM}}, {Seed: 3, Wrong: []int{NoSM}}, {Seed: 4}}
	}
	for _, tt := range []struct {
		name    string
		change  func(r *Result)
		outcome Outcome
		hard    bool
		reason  string
		cell    string
	}{
		{"every copy verified", func(*Result) {}, Verified, false, "7 of 7 copies verified", "1"},
		{"blocks and copies", func(r *Result) { r.Stages = append(whole().Stages, r.Stages...) }, Verified, false, "2 of 2 blocks and 7 of 7 copies verified", "1"},
		{"one that was not made", func(r *Result) { r.Stages[0].Copy.Verified = 6 }, NotTested, false, "6 of 7 copies", "-"},
		{"nothing was copied", func(r *Result) { r.Stages[0].Copy.Copies, r.Stages[0].Copy.Verified = 0, 0 }, NotTested, false, "nothing was copied", "-"},
		{"no canary", func(r *Result) { r.Stages[0].Canary.Tried = false }, NotTested, false, "no canary", "-"},
		{"a canary that nobody saw", func(r *Result) { r.Stages[0].Canary.Seen = false }, NotTested, false, "the canary at byte 64", "-"},
		{"an error", func(r *Result) { r.Stages[0].Err = "cuMemHostAlloc" }, NotTested, false, "cuMemHostAlloc", "-"},
		{"no second GPU is no gap, and proves nothing", func(r *Result) { r.Stages[0].Skip = "no GPU but its own" }, NotTested, false, "no kernel ran", "."},
		{"wrong, three times again", bad, Wrong, true, "k21_h2d gave wrong data (host to device): 2 words of 4096 bytes, the first at byte 128, bits 00000400; again in 3 of 3 reruns", "x"},
		{"wrong, twice again", func(r *Result) { bad(r); r.Stages[0].Retests[1].Wrong = nil }, Wrong, false, "again in 2 of 3 reruns", "x"},
		{"wrong, and right when compared again", func(r *Result) { bad(r); r.Stages[0].Copy.Wrong.Reread = false }, NotTested, false, "not when it was compared again", "x"},
		{"wrong, and what was copied has changed", func(r *Result) { bad(r); r.Stages[0].Copy.Wrong.Inputs = false }, NotTested, false, "so did what was copied", "x"},
		{"wrong to a peer", func(r *Result) { bad(r); r.Stages[0].Copy.Peer = "GPU-2" }, Wrong, true, "(host to device GPU-2)", "x"},
	} {
		r := withCopies()
		tt.change(&r)
		v := Judge(r, trusted)
		if v.Outcome != tt.outcome || v.Hard != tt.hard || v.SM != NoSM || !strings.Contains(v.Reason, tt.reason) {
			t.Errorf("%s: %+v", tt.name, v)
		}
		if m := Cover(r); len(m.Copies) != 1 || m.Copies[0].Cell != tt.cell {
			t.Errorf("%s: %+v, want cell %s", tt.name, m.Copies, tt.cell)
		}
	}
}

// Of several seeds a wrong one outweighs all in the matrix, and of clean ones the slowest counts.
func TestCopiesOfSeveralSeeds(t *testing.T) {
	r, slow := withCopies(), withCopies().Stages[0]
	slow.Copy.Rates[0], slow.Copy.Link = Rate{Direction: HostToDevice, Median: 40e9, Worst: 48e9, Samples: 9}, &Link{Gen: 4}
	if r.Add(slow) || len(r.Stages) != 1 {
		t.Fatalf("%+v", r.Stages)
	}
	if c := r.Stages[0].Copy; c.Rates[0] != (Rate{Direction: HostToDevice, Median: 40e9, Worst: 48e9, Samples: 18}) || c.Link == nil || c.Link.Gen != 4 {
		t.Errorf("%+v", c)
	}
	other := withCopies().Stages[0]
	other.Copy.Peer = "GPU-2"
	if !r.Add(other) || len(r.Stages) != 2 {
		t.Errorf("another peer's copies are another stage: %+v", r.Stages)
	}
	bad := withCopies().Stages[0]
	bad.Copy.Wrong = &CopyMismatch{}
	r.Stages = []Stage{withCopies().Stages[0], bad, withCopies().Stages[0]}
	if m := Cover(r); m.Verified != 0 || m.Cells != 1 || m.Copies[0].Cell != "x" {
		t.Errorf("%+v", m)
	}
	unmeasured := withCopies().Stages[0]
	unmeasured.Copy.Rates, unmeasured.Copy.NoRate = nil, "others copied"
	r.Stages = []Stage{unmeasured}
	r.Add(withCopies().Stages[0])
	if c := r.Stages[0].Copy; len(c.Rates) != 1 || c.NoRate != "" {
		t.Errorf("%+v", c)
	}
}

func TestRateOf(t *testing.T) {
	if r := RateOf(ToPeer, true, 100, []float64{4, 1, 2}); r == nil || *r != (Rate{ToPeer, true, 50, 25, 3}) {
		t.Errorf("%+v", r)
	}
	for _, bad := range [][]float64{nil, {0}, {1, -1}, {math.NaN()}, {math.Inf(1)}} {
		if r := RateOf(ToPeer, false, 100, bad); r != nil {
			t.Errorf("%v gives %+v", bad, r)
		}
	}
}

// Every copy lies in the buffer, the whole of it is copied, and so are odd lengths from odd bytes on.
func TestTransfers(t *testing.T) {
	for _, s := range []Size{Full, Reduced} {
		whole, odd := false, false
		for _, tr := range s.Transfers() {
			if tr.Bytes < 1 || tr.Offset+tr.Bytes > s.CopyBytes() {
				t.Errorf("%s: %+v of %d bytes", s.Name, tr, s.CopyBytes())
			}
			whole = whole || tr.Bytes == s.CopyBytes()
			odd = odd || tr.Offset%4 != 0 && tr.Bytes%4 != 0
		}
		if !whole || !odd {
			t.Errorf("%s: whole %t, odd %t", s.Name, whole, odd)
		}
	}
}
