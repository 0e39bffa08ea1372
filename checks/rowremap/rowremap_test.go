package rowremap

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

var gpu = checks.GPU{Node: "gpu001", UUID: "GPU-1", Index: 2, PCI: "0000:3b:00.0"}

func TestJudge(t *testing.T) {
	limits := policy.RowRemap{MaxCorrectable: 10, WatchUncorrectable: 512}
	read := func(r Reading) Reading { r.Have = checks.Read; return r }
	for _, tt := range []struct {
		name    string
		reading Reading
		verdict checks.Verdict
		action  checks.Action
		hard    bool
		reason  string
	}{
		{"no rows remapped is healthy", read(Reading{}), checks.Pass, checks.None, false, "0 rows remapped, none pending, none failed"},
		{"some rows remapped is healthy", read(Reading{Correctable: 3, Uncorrectable: 2}), checks.Pass, checks.None, false, "5 rows remapped"},
		{"pending is safe to run on", read(Reading{Uncorrectable: 1, Pending: true}), checks.Pass, checks.ResetGPU, false, "row remap pending"},
		{"failed goes back to the vendor", read(Reading{Uncorrectable: 12, Failed: true}), checks.Fail, checks.RMA, true, "row remap failed; 12 uncorrectable"},
		{"failed outranks pending", read(Reading{Pending: true, Failed: true}), checks.Fail, checks.RMA, true, "failed"},
		{"failed outranks many correctable", read(Reading{Correctable: 99, Failed: true}), checks.Fail, checks.RMA, true, "failed"},
		{"as many correctable as allowed", read(Reading{Correctable: 10}), checks.Pass, checks.None, false, "10 rows"},
		{"one more is suspect, not hard", read(Reading{Correctable: 11}), checks.Fail, checks.Drain, false, "11 rows remapped after correctable errors, more than 10"},
		{"too many outranks pending", read(Reading{Correctable: 11, Pending: true}), checks.Fail, checks.Drain, false, "more than 10"},
		{"uncorrectable rows have no limit of their own", read(Reading{Uncorrectable: 500}), checks.Pass, checks.None, false, "500 rows"},
		{"one below what DCGM warns of", read(Reading{Uncorrectable: 511}), checks.Pass, checks.None, false, "511 rows"},
		{"as many as DCGM warns of", read(Reading{Uncorrectable: 512}), checks.Pass, checks.Watch, false, "512 rows remapped after uncorrectable errors, 512 or more"},
		{"a bank without a spare row", read(Reading{Uncorrectable: 8, HaveBanks: checks.Read, Banks: Banks{Max: 2559, None: 1}}), checks.Pass, checks.Watch, false, "banks without a spare row: 1"},
		{"banks that are low have some", read(Reading{HaveBanks: checks.Read, Banks: Banks{Max: 2550, High: 6, Partial: 2, Low: 2}}), checks.Pass, checks.None, false, "0 rows"},
		{"banks nobody read", read(Reading{Banks: Banks{None: 1}}), checks.Pass, checks.None, false, "0 rows"},
		{"sample 13: one pending, one bank high", read(Reading{Uncorrectable: 1, Pending: true, HaveBanks: checks.Read, Banks: Banks{Max: 2559, High: 1}}), checks.Pass, checks.ResetGPU, false, "pending"},
		{"sample 09, GPU 2: failed, and a bank exhausted", read(Reading{Correctable: 9, Uncorrectable: 12, Failed: true, HaveBanks: checks.Read, Banks: Banks{Max: 2550, High: 6, Partial: 2, Low: 1, None: 1}}), checks.Fail, checks.RMA, true, "failed"},
		{"never asked", Reading{}, checks.Unknown, checks.None, false, "row remapper not read"},
		{"the call failed", Reading{Err: "ERROR_UNKNOWN"}, checks.Unknown, checks.None, false, "not read: ERROR_UNKNOWN"},
		{"numbers nobody read prove nothing", Reading{Failed: true, Correctable: 99}, checks.Unknown, checks.None, false, "not read"},
		{"a GPU that remaps no rows", Reading{Have: checks.NotSupported}, checks.NotApplicable, checks.None, false, "remaps no rows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(gpu, tt.reading, limits)
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard != tt.hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, hard %t, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.hard, tt.reason)
			}
			if f.Check != ID || f.Subject.Key() != "gpu/GPU-1" {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
			if read := tt.reading.Have == checks.Read; read != (f.Evidence != "") {
				t.Errorf("evidence %q", f.Evidence)
			}
		})
	}
}
