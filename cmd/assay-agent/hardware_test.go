package main

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/agent"
)

func TestLogEndKeepsTheLastRecords(t *testing.T) {
	for _, tt := range []struct {
		name        string
		count, size int
		kept        int
	}{
		{"none", 0, 0, 0},
		{"all that fit", 10, 100, 10},
		{"the last ones", 3 * maxDump / 1000, 1000, maxDump / 1000},
		{"no record longer than the bound", 3, maxDump + 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var e logEnd
			line := strings.Repeat("x", tt.size)
			for i := range tt.count {
				e.add(agent.KernelRecord{Seq: uint64(i), Line: line})
				if len(e.kept) > 2*maxDump/max(tt.size, 1)+8 {
					t.Fatalf("%d records held of %d", len(e.kept), i+1)
				}
			}
			got := e.records()
			if len(got) != tt.kept {
				t.Fatalf("%d records, want %d", len(got), tt.kept)
			}
			for i, r := range got {
				if want := uint64(tt.count - tt.kept + i); r.Seq != want || r.Line != line {
					t.Fatalf("record %d is number %d, want %d", i, r.Seq, want)
				}
			}
		})
	}
}
