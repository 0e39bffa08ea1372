package agent

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
)

// BenchmarkDecideFastPath is the decision that lets a job pass on the certificate.
func BenchmarkDecideFastPath(b *testing.B) {
	s, r := wellState(), NewHookRequest(Prolog, map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0-1"})
	for b.Loop() {
		if d := Decide(s, r); d.Outcome != FastPass {
			b.Fatal(d)
		}
	}
}

// BenchmarkJudgeQuick is the quick suite's judging, reading aside.
func BenchmarkJudgeQuick(b *testing.B) {
	s := wellState()
	in := SuiteInput{Level: checks.Quick, Snapshot: wellSnapshot(), Policy: s.Policy}
	for b.Loop() {
		Judge(in)
	}
}

// BenchmarkSight is one line of the kernel log that holds an XID.
func BenchmarkSight(b *testing.B) {
	rec := KernelRecord{Line: lineXID79}
	var seen []sighting
	for b.Loop() {
		if seen = sight(seen[:0], rec); len(seen) != 1 {
			b.Fatal("no event")
		}
	}
}
