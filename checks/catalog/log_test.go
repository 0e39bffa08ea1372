package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/kernlog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/xid"
)

// TestLog judges logs whose lines begin with seconds. The hardware stands before them: "gpu ADDRESS [UUID]", "below PORT
// DEVICE". A line "next" hands out what has been found so far, as the agent does; "boot ID" begins another boot.
func TestLog(t *testing.T) { datadriven.RunTest(t, "testdata/log", judgeLines) }

// TestUserReports judges what public reports of neighbouring tools show, in the same form. The numbers are those of
// packaging/docs/user-reports.md.
func TestUserReports(t *testing.T) { datadriven.RunTest(t, "testdata/reports", judgeLines) }

func judgeLines(t *testing.T, d *datadriven.TestData) string {
	known := checks.Inventory{Node: "n", BootID: "b1"}
	p := acting()
	d.MaybeScanArgs(t, "max-corrected", &p.AER.MaxCorrected)
	if d.HasArg("aer-off") {
		p.Checks = map[string]policy.Check{"aer": {Mode: policy.Off}}
	}
	log := Log{Tree: aer.Tree{Parent: map[string]string{}}}
	var all []checks.Finding
	var batch []LogEvent
	next := func() {
		all = append(all, log.Judge(batch, known, p)...)
		batch = nil
	}
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		switch f[0] {
		case "gpu":
			log.Tree.GPUs = append(log.Tree.GPUs, f[1])
			if len(f) > 2 {
				known.GPUs = append(known.GPUs, checks.GPU{UUID: f[2], Index: len(known.GPUs), PCI: f[1]})
			}
		case "below":
			log.Tree.Parent[f[2]] = f[1]
		case "next":
			next()
		case "boot":
			next()
			known.BootID = f[1]
		default:
			s, err := strconv.ParseFloat(f[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := kernlog.Parse(strings.TrimSpace(line)); ok {
				batch = append(batch, LogEvent{Event: e, At: at.Add(time.Duration(s * float64(time.Second)))})
			}
		}
	}
	next()
	return tell(checks.Collapse(checks.GroupIncidents(all, p.Agent.IncidentGap.D(), p.Agent.IncidentCause.D())))
}

// tell prints findings: when, the incident's letter (upper case for its root), what, where, and why.
func tell(fs []checks.Finding) string {
	var b strings.Builder
	letters := map[string]string{}
	for _, f := range fs {
		l, ok := letters[f.Incident]
		if !ok {
			l = string(rune('a' + len(letters)))
			letters[f.Incident] = l
		}
		if !f.Secondary {
			l = strings.ToUpper(l)
		}
		fmt.Fprintf(&b, "%s %s %s", f.At.Sub(at), l, f.Check)
		if f.Code > 0 {
			fmt.Fprintf(&b, " %d", f.Code)
		}
		fmt.Fprintf(&b, " %s: %s %s", f.Subject.Key(), f.Verdict, f.Action)
		if f.HardFault() {
			b.WriteString(" hard")
		}
		fmt.Fprintf(&b, ": %s", f.Reason)
		if f.Count > 1 {
			fmt.Fprintf(&b, " (%d times)", f.Count)
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func TestOfLog(t *testing.T) {
	for _, c := range All() {
		if want := strings.HasPrefix(c.Source, "kernel log"); OfLog(c.ID) != want {
			t.Errorf("%s: %t", c.ID, !want)
		}
	}
}

// NVML's event does not say which process had an error, so that however many there are accuse no GPU.
func TestEventsOfNVMLAccuseNoGPU(t *testing.T) {
	p := policy.Default()
	judge := func(byNVML bool) int {
		var events []LogEvent
		at := time.Unix(1_000_000, 0)
		for range p.XID.SameGPU + 1 {
			at = at.Add(time.Hour / 2)
			e := xid.Event{Code: 31, PCI: "0000:3b:00.0", Link: -1, NVML: byNVML}
			events = append(events, LogEvent{Event: e, At: at})
		}
		faults := 0
		for _, f := range JudgeLog(events, checks.Inventory{Node: "n", BootID: "b1"}, aer.Tree{}, p) {
			if f.Check != xid.ID || f.Code != 31 || f.Subject.PCI != "0000:3b:00.0" || strings.HasPrefix(f.Evidence, "NVML event ") != byNVML {
				t.Errorf("%+v", f)
			}
			if f.Verdict == checks.Fail {
				faults++
			}
		}
		return faults
	}
	if lines, events := judge(false), judge(true); lines != 1 || events != 0 {
		t.Errorf("%d faults by lines, %d by events; want 1 and 0", lines, events)
	}
}
