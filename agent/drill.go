package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/kernlog"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// drill judges a made-up line of the kernel log by the same rules as a real one, marks what they find, and reports that the
// way all faults go. Nothing on this node acts on it: no certificate is voided and nothing is remembered.
func (a *Agent) drill(ctx context.Context, e wire.Effect) wire.EffectResult {
	id := e.Args["drill"]
	if !caseName.MatchString(id) {
		return failed("drill: %q is no drill's id", id)
	}
	var r wire.EffectResult
	err := a.call(ctx, func() {
		known := a.knownHardware()
		i := slices.IndexFunc(known.GPUs, func(g checks.GPU) bool { return g.UUID == e.Args["gpu"] })
		if i < 0 {
			r = failed("drill %s: this node knows no GPU %s", id, e.Args["gpu"])
			return
		}
		fs := made(id, known.GPUs[i], known, a)
		if v := checks.FoldFindings(fs); v != checks.Fail {
			r = failed("drill %s: the rules make %s of a lost GPU", id, v)
			return
		}
		report := a.report(checks.WhyBackground, SuiteResult{Verdict: checks.Fail}, fs)
		sum := sha256.Sum256([]byte("drill " + id + " " + e.ID + " " + a.bootID))
		report.ID = "d" + hex.EncodeToString(sum[:15])
		a.put(report)
		r = wire.EffectResult{Outcome: outcomeDone, Detail: fs[0].Evidence}
	})
	if err != nil {
		return failed("drill %s: %v", id, err)
	}
	return r
}

// made is what the rules find in the line that the driver writes when the GPU falls off the bus, marked as the drill's.
func made(id string, gpu checks.GPU, known checks.Inventory, a *Agent) []checks.Finding {
	bus, _, _ := strings.Cut(gpu.PCI, ".") // the driver leaves the function out
	line := fmt.Sprintf("NVRM: Xid (PCI:%s): 79, pid='<unknown>', name=<unknown>, assay drill %s: GPU has fallen off the bus.", bus, id)
	at := time.Now()
	var events []catalog.LogEvent
	for ev := range kernlog.Events(line) {
		events = append(events, catalog.LogEvent{Event: ev, At: at})
	}
	fs := catalog.JudgeLog(events, known, a.cfg.Tree, *a.policy.Load())
	for i := range fs {
		fs[i].Drill, fs[i].Reason = id, "drill "+id+": "+fs[i].Reason
		if fs[i].Evidence == "" {
			fs[i].Evidence = line
		}
	}
	return fs
}
