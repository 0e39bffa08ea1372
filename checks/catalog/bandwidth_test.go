package catalog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/sdc"
	"github.com/assay-gpu/assay/golden"
)

// What a screen's golden run measured is judged against the link, the node's other GPUs, and what policy sets for PCIe too.
func TestJudgeBandwidth(t *testing.T) {
	known := checks.Inventory{Node: "n", BootID: "b"}
	readings := map[string]sdc.Reading{}
	for i, gbps := range []float64{55, 55, 27, 54} {
		g := checks.GPU{UUID: fmt.Sprintf("GPU-%d", i), Index: i, Name: "H100"}
		known.GPUs = append(known.GPUs, g)
		copies := func(kernel string) golden.Stage {
			return golden.Stage{Kernel: kernel, Copy: &golden.Copy{Link: &golden.Link{MaxGen: 5, MaxWidth: 16}, Rates: []golden.Rate{{Median: gbps * 1e9, Worst: gbps * 1e9}}}}
		}
		readings[g.UUID] = sdc.Reading{Have: checks.Read, Result: golden.Result{Stages: []golden.Stage{copies("k21_h2d"), copies("k21_d2h")}}}
	}
	known.GPUs = append(known.GPUs, checks.GPU{UUID: "GPU-4", Index: 4, Name: "H100"}, checks.GPU{UUID: "GPU-5", Index: 5, Name: "H100"})
	readings["GPU-4"] = sdc.Reading{Err: "hangs in the driver"}
	readings["GPU-5"] = sdc.Reading{Have: checks.NotSupported, Err: "load libcuda.so.1"}
	at := time.Unix(60, 0)
	judge := func(change func(*policy.Policy)) string {
		p := policy.Default()
		if change != nil {
			change(&p)
		}
		var out []string
		for _, f := range JudgeBandwidth(readings, at, known, p) {
			if f.At != at || f.BootID != "b" || f.Subject.Node != "n" {
				t.Errorf("%+v", f)
			}
			out = append(out, f.Verdict.String())
		}
		return strings.Join(out, " ")
	}
	if got := judge(nil); got != "pass pass fail pass unknown not_applicable" {
		t.Error(got)
	}
	if got := judge(func(p *policy.Policy) { p.Golden.NoLibrary = "unknown" }); got != "pass pass fail pass unknown unknown" {
		t.Error(got)
	}
	if got := judge(func(p *policy.Policy) { p.PCIe.Width, p.Bandwidth.PeerShare = 8, 0.1 }); got != "pass pass pass pass unknown not_applicable" {
		t.Errorf("policy wants eight lanes: %s", got)
	}
}
