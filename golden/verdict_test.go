package golden

import (
	"slices"
	"strings"
	"testing"
)

// whole is a result that passes: two SMs, one kernel, a canary seen.
func whole() Result {
	return Result{
		Suite: "prolog", Size: "reduced", GPU: Device{UUID: "GPU-1", Capability: 90, SMs: 2}, Seconds: 1,
		Stages: []Stage{{
			Kernel: "k01_imad", Digest: "d1", Seed: 3, Words: 512, Canary: Canary{SM: 1, Thread: 5, Tried: true, Seen: true},
			SMs: []SM{{SM: 0, Verified: 1, Warps: 4}, {SM: 1, Verified: 1, Warps: 4}},
		}},
	}
}

func prod(r Record) Record {
	r.Digest, r.Capability, r.GPUs, r.Nodes, r.Runs, r.Cold, r.Hot, r.By = "d1", 90, 3, 2, 10_000, true, true, "site"
	return r
}

func wrong(s *Stage) {
	s.SMs[1] = SM{SM: 1, Warps: 4, Mismatch: &Mismatch{Words: 9, Reread: true, Inputs: true, Where: &Origin{Step: 7, Partition: 2, Lane: 11, Expected: 1, Got: 3}}}
	s.Retests = []Rerun{{Seed: 3, Wrong: []int{1}}, {Seed: 3, Wrong: []int{1}}, {Seed: 3, Wrong: []int{1}}, {Seed: 4}}
}

func TestJudge(t *testing.T) {
	trusted := Grades{Records: []Record{prod(Record{})}}
	for _, tt := range []struct {
		name    string
		change  func(r *Result)
		grades  Grades
		outcome Outcome
		hard    bool
		grade   Grade
		reason  string
	}{
		{"every block verified", func(*Result) {}, trusted, Verified, false, Lab, "2 of 2 blocks"},
		{"nothing ran", func(r *Result) { *r = Result{} }, trusted, NotTested, false, Lab, "no kernel ran"},
		{"stages without blocks", func(r *Result) { r.GPU.SMs = 0; r.Stages[0].SMs = nil }, trusted, NotTested, false, Lab, "no kernel ran"},
		{"an SM was not reached", func(r *Result) { r.Stages[0].SMs = r.Stages[0].SMs[:1] }, trusted, NotTested, false, Lab, "1 of 2 SMs"},
		{"an SM is said twice", func(r *Result) { r.Stages[0].SMs[1].SM = 0 }, trusted, NotTested, false, Lab, "twice"},
		{"the run ended early", func(r *Result) { r.Err = "cuInit: CUDA_ERROR_NO_DEVICE (100)" }, trusted, NotTested, false, Lab, "NO_DEVICE"},
		{"a stage ended in an error", func(r *Result) { r.Stages[0].Err = "a guard band was overwritten" }, trusted, NotTested, false, Lab, "guard"},
		{"no canary", func(r *Result) { r.Stages[0].Canary = Canary{} }, trusted, NotTested, false, Lab, "no canary"},
		{"a canary that nobody saw", func(r *Result) { r.Stages[0].Canary.Seen = false }, trusted, NotTested, false, Lab, "canary on SM 1"},
		{"no word was compared", func(r *Result) { r.Stages[0].Words = 0 }, trusted, NotTested, false, Lab, "no word"},
		{"a block that moved", func(r *Result) { r.Stages[0].SMs[1] = SM{SM: 1, Moved: 1, Warps: 4} }, trusted, NotTested, false, Lab, "moved"},
		{"a kernel that does not apply is no gap", func(r *Result) { r.Stages = append(r.Stages, Stage{Kernel: "k", Skip: "needs sm_100"}) }, trusted, Verified, false, Lab, "2 of 2"},
		{"only kernels that do not apply", func(r *Result) { r.Stages = []Stage{{Kernel: "k", Skip: "needs sm_100"}} }, trusted, NotTested, false, Lab, "no kernel ran"},
		{"a wrong result, three times again, trusted", func(r *Result) { wrong(&r.Stages[0]) }, trusted, Wrong, true, Prod, "SM 1: 9 of 512 words; first at step 7, partition 2, lane 11, bits 00000002; again in 3 of 3"},
		{"the same, not trusted", func(r *Result) { wrong(&r.Stages[0]) }, Grades{}, Wrong, false, Lab, "SM 1"},
		{"two reruns of three are not enough", func(r *Result) { wrong(&r.Stages[0]); r.Stages[0].Retests[1].Wrong = nil }, trusted, Wrong, false, Prod, "again in 2 of 3"},
		{"a rerun with another seed does not count", func(r *Result) { wrong(&r.Stages[0]); r.Stages[0].Retests[1].Seed = 9 }, trusted, Wrong, false, Prod, "again in 2 of 2"},
		{"another SM's rerun does not count", func(r *Result) { wrong(&r.Stages[0]); r.Stages[0].Retests[1].Wrong = []int{0} }, trusted, Wrong, false, Prod, "2 of 3"},
		{"a difference that a second copy does not have", func(r *Result) { wrong(&r.Stages[0]); r.Stages[0].SMs[1].Mismatch.Reread = false }, trusted, NotTested, false, Lab, "copied again"},
		{"a difference with inputs that changed", func(r *Result) { wrong(&r.Stages[0]); r.Stages[0].SMs[1].Mismatch.Inputs = false }, trusted, NotTested, false, Lab, "inputs"},
		{"a wrong result outranks a run that ended early", func(r *Result) { wrong(&r.Stages[0]); r.Err = "stopped" }, trusted, Wrong, true, Prod, "SM 1"},
		{"grade of another capability", func(r *Result) { wrong(&r.Stages[0]); r.GPU.Capability = 80 }, trusted, Wrong, false, Lab, "SM 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := whole()
			tt.change(&r)
			v := Judge(r, tt.grades)
			if v.Outcome != tt.outcome || v.Hard != tt.hard || v.Grade != tt.grade || !strings.Contains(v.Reason, tt.reason) {
				t.Errorf("got %v, hard %t, grade %v, %q; want %v, hard %t, grade %v, %q", v.Outcome, v.Hard, v.Grade, v.Reason, tt.outcome, tt.hard, tt.grade, tt.reason)
			}
		})
	}
}

func TestGrades(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(r *Record)
		want   Grade
	}{
		{"three GPUs in two nodes, 10,000 runs, cold and hot", func(*Record) {}, Prod},
		{"two GPUs", func(r *Record) { r.GPUs = 2 }, Beta},
		{"one node", func(r *Record) { r.Nodes = 1 }, Beta},
		{"one run less", func(r *Record) { r.Runs = 9_999 }, Beta},
		{"never hot", func(r *Record) { r.Hot = false }, Beta},
		{"never cold", func(r *Record) { r.Cold = false }, Beta},
		{"nobody signs for it", func(r *Record) { r.By = "" }, Beta},
		{"no run", func(r *Record) { r.Runs = 0 }, Lab},
		{"for every kernel at once", func(r *Record) { r.Digest = "*" }, Lab},
		{"another kernel", func(r *Record) { r.Digest = "d2" }, Lab},
		{"the simulated GPU's record", func(r *Record) { r.Simulated = true }, Lab},
	} {
		r := prod(Record{})
		tt.change(&r)
		if got := (Grades{Records: []Record{r}}).Of("d1", 90); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	sim := Grades{Simulated: true, Records: []Record{{Digest: "*", Capability: 90, Simulated: true, By: "scenario"}}}
	if sim.Of("d1", 90) != Prod || sim.Of("d1", 80) != Lab {
		t.Error("the simulated GPU's promotion")
	}
	if sim.Simulated = false; sim.Of("d1", 90) != Lab {
		t.Error("a promotion of the simulated GPU holds for a real one")
	}
}

func TestCompare(t *testing.T) {
	want := []uint32{1, 2, 3, 4, 5, 6, 7, 8} // two words, four threads
	if m := Compare(slices.Clone(want), want, 4); m != nil {
		t.Errorf("equal words give %+v", m)
	}
	for i := range want {
		got := slices.Clone(want)
		got[i] ^= 1 << 31
		m := Compare(got, want, 4)
		if m == nil || m.Words != 1 || m.First != (Word{i % 4, i / 4, want[i], got[i]}) || !slices.Equal(m.Threads, []int{i % 4}) {
			t.Errorf("word %d: %+v", i, m)
		}
	}
}

func TestFirstWrong(t *testing.T) {
	for first := 1; first <= 100; first++ {
		calls := 0
		got, err := FirstWrong(100, func(n int) (bool, error) { calls++; return n >= first, nil })
		if err != nil || got != first || calls > 7 {
			t.Fatalf("first %d: got %d after %d calls, %v", first, got, calls, err)
		}
	}
}

func TestCover(t *testing.T) {
	r := whole()
	r.Stages = append(r.Stages, Stage{Kernel: "k2", Skip: "needs sm_100"}, Stage{Kernel: "k3", Err: "broke", SMs: r.Stages[0].SMs})
	bad := r.Stages[0]
	bad.Kernel, bad.SMs = "k4", slices.Clone(bad.SMs)
	wrong(&bad)
	r.Stages = append(r.Stages, bad)
	m := Cover(r)
	if m.Cells != 3*2*Partitions || m.Verified != 3*Partitions {
		t.Errorf("%d of %d", m.Verified, m.Cells)
	}
	for i, want := range []string{"4 4", ". .", "- -", "4 x"} {
		if got := strings.Join(m.Rows[i].SMs, " "); got != want {
			t.Errorf("%s: %q, want %q", m.Rows[i].Kernel, got, want)
		}
	}
	// A later clean seed does not take a wrong result back.
	clean := bad
	clean.SMs = whole().Stages[0].SMs
	r.Stages = append(r.Stages, clean)
	if got := strings.Join(Cover(r).Rows[3].SMs, " "); got != "4 x" {
		t.Errorf("after a clean seed: %q", got)
	}
}
