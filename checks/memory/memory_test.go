package memory

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strike"
)

func limits() policy.Memory {
	return policy.Memory{Tolerance: 0.02, MaxUncorrected: 1, Corrected: policy.Limit{Max: 10, Within: policy.Duration(24 * time.Hour), Action: "watch"}}
}

func read(total, learned uint64, ms ...Module) Reading {
	return Reading{Have: checks.Read, Total: total, Learned: learned, EDAC: checks.Read, Modules: ms}
}

func corrected(rise uint64, whole bool) Module {
	return Module{Name: "mc0/dimm3", Label: "CPU0_A1", Corrected: 500, Past: strike.Delta{Rise: rise, Full: whole}}
}

func TestJudge(t *testing.T) {
	wants := func(bytes uint64) policy.Memory { p := limits(); p.Bytes = bytes; return p }
	drains := limits()
	drains.Corrected.Action = "drain"
	for _, tt := range []struct {
		name    string
		reading Reading
		policy  policy.Memory
		want    string // verdict action
		reason  string
	}{
		{"all there", read(2e12, 2e12, Module{Name: "mc0"}), limits(), "pass none", "2.00 TB; no uncorrected error on 1 modules"},
		{"no error counters", Reading{Have: checks.Read, Total: 2e12, EDAC: checks.NotSupported}, limits(), "pass none", "this kernel counts no memory errors"},
		{"as little as is tolerated", read(980, 1000), limits(), "pass none", ""},
		{"one byte less", read(979, 1000), limits(), "fail drain", "of memory, this node has shown"},
		{"more than ever", read(1001, 1000), limits(), "pass none", ""},
		{"as policy wants, though the node has shown more", read(1000, 2000), wants(1000), "pass none", ""},
		{"less than policy wants", read(979, 0), wants(1000), "fail drain", "policy wants"},
		{"by a byte more than policy wants", read(980, 0), wants(1000), "pass none", ""},
		{"as many uncorrected errors as allowed", read(9, 9, Module{Name: "mc0", Uncorrected: 1}), limits(), "pass none", ""},
		{"one more", read(9, 9, Module{Name: "mc0/dimm3", Label: "CPU0_A1", Uncorrected: 2}), limits(), "fail drain", "mc0/dimm3 (CPU0_A1): 2 uncorrected errors in this boot"},
		{"corrected errors that are not worth a look", read(9, 9, corrected(10, true)), limits(), "pass none", ""},
		{"one more corrected", read(9, 9, corrected(11, true)), limits(), "pass watch", "mc0/dimm3 (CPU0_A1): 11 corrected errors within 1d"},
		{"many, in less than a window", read(9, 9, corrected(999, false)), limits(), "pass none", ""},
		{"more corrected than policy allows", read(9, 9, corrected(11, true)), drains, "fail drain", "11 corrected errors"},
		{"counters that could not be read", Reading{Have: checks.Read, Total: 9, EDACErr: "mc0: EIO"}, limits(), "unknown none", "error counters not read: mc0: EIO"},
		{"never read", Reading{Total: 9}, limits(), "unknown none", "memory not read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(tt.reading, tt.policy)
			if got := f.Verdict.String() + " " + f.Action.String(); got != tt.want || !strings.Contains(f.Reason, tt.reason) || f.Hard || f.Check != ID {
				t.Errorf("got %s, hard %t, %q; want %s, %q", got, f.Hard, f.Reason, tt.want, tt.reason)
			}
		})
	}
}

// The most the node has shown is learned, and what a counter held at the start counts for nothing.
func TestTrack(t *testing.T) {
	book, learned := strike.NewBook("b"), uint64(0)
	look := func(at time.Duration, total, errors uint64) Reading {
		return Track(book, &learned, at, read(total, 0, Module{Name: "mc0", Corrected: errors}), limits())
	}
	look(0, 1000, 5000)
	if r := look(12*time.Hour, 900, 5006); r.Learned != 1000 || r.Modules[0].Past.Full {
		t.Errorf("%+v", r)
	}
	r := look(24*time.Hour, 900, 5011)
	if d := r.Modules[0].Past; !d.Full || d.Rise != 11 {
		t.Errorf("%+v", d)
	}
	if got := Track(book, &learned, 25*time.Hour, Reading{Total: 7000}, limits()); got.Learned != 1000 {
		t.Errorf("a total nobody read was learned: %+v", got)
	}
}

func TestFixtures(t *testing.T) {
	judge := func(r Reading) []checks.Finding { return []checks.Finding{Judge(r, limits())} }
	checktest.Three(t, ID, judge(read(9, 9)), judge(read(9, 90)), judge(Reading{Err: "EIO"}))
}
