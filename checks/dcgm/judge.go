package dcgm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// Judge turns a report of the diagnostic into findings: one for each error of each entity, and for each GPU without any
// that it passed, or was not tested. known are the node's GPUs, to name those of the report: by serial where it gives one,
// else by index; none may be known. It does no I/O.
func Judge(node string, known []checks.GPU, r Report, p policy.DCGM) []checks.Finding {
	j := &judge{node: node, known: known, report: r, policy: p, gpus: map[int]*tally{}, hardware: hasHardware(r)}
	switch {
	case r.Missing != "" && p.Required:
		j.add(Entity{}, 0, ruling{}, "policy requires DCGM, and it is not there: "+r.Missing, "")
		return j.found
	case r.Missing != "":
		j.add(Entity{}, 0, ruling{verdict: checks.NotApplicable}, "no DCGM on this node", "")
		return j.found
	}
	for _, g := range r.GPUs {
		j.tally(Entity{OfGPU, g.Index})
	}
	for _, t := range r.Tests {
		j.test(t)
	}
	j.summaries()
	j.troubles()
	return j.found
}

// judge is one report on its way to findings.
type judge struct {
	node     string
	known    []checks.GPU
	report   Report
	policy   policy.DCGM
	hardware bool // the report holds a test of hardware
	gpus     map[int]*tally
	whole    tally    // of the node
	skipped  []string // tests that were skipped for all
	found    []checks.Finding
}

// A tally is what happened to one entity.
type tally struct {
	passed, software, skipped []string
	settled                   bool // it has a finding that is no pass
}

// software reports whether a test looks at software and settings only. Before 4.0 these were tests of their own, in a
// category of their own; since then they are one test.
func software(t Test) bool {
	return strings.EqualFold(t.Category, "Deployment") || strings.EqualFold(t.Name, "software")
}

// settings are the tests before 4.0 that look at settings and libraries: where such a test failed and gives no code, a
// person has to change something, and no part is to blame. Of its siblings Inforom and Page Retirement/Row Remap speak of
// hardware.
var settings = map[string]bool{
	"Blacklist": true, "Denylist": true, "NVML Library": true, "CUDA Main Library": true, "CUDA Toolkit Library": true,
	"Permissions and OS Blocks": true, "Persistence Mode": true, "Environment Variables": true, "Graphics Processes": true,
}

func hasHardware(r Report) bool {
	return slices.ContainsFunc(r.Tests, func(t Test) bool { return !software(t) })
}

func (j *judge) tally(e Entity) *tally {
	if e.Group != OfGPU {
		return &j.whole
	}
	if j.gpus[e.ID] == nil {
		j.gpus[e.ID] = &tally{}
	}
	return j.gpus[e.ID]
}

func (j *judge) test(t Test) {
	for _, r := range t.Rows {
		if r.Status == Skipped && len(r.Errors) == 0 && r.Entity == (Entity{}) && !software(t) {
			j.skipped = append(j.skipped, t.Name)
			continue
		}
		j.row(t, r)
	}
}

func (j *judge) row(t Test, r Row) {
	who := j.tally(r.Entity)
	for _, e := range r.Errors {
		if !j.error(t, r, e) {
			who.settled = true
		}
	}
	switch {
	case r.Entity.Group == OfCPU || r.Entity.Group == OfSwitch:
		// Only what is wrong with them is told: the verdict is on the GPUs.
		if r.Status == Failed && len(r.Errors) == 0 {
			j.add(r.Entity, 0, ruling{checks.Fail, checks.Drain, false, ""}, t.Name+" failed, and says no more", "")
		}
	case len(r.Errors) > 0:
		if (r.Status == Passed || r.Status == Warned) && !who.settled {
			who.pass(t)
		}
	case r.Status == Passed, r.Status == Warned:
		who.pass(t)
	case r.Status == Skipped:
		who.skipped = append(who.skipped, t.Name)
	case r.Status == Failed:
		who.settled = true
		j.add(r.Entity, 0, ruling{checks.Fail, checks.Drain, false, ""}, t.Name+" failed, and says no more", "")
	default:
		who.settled = true
		j.add(r.Entity, 0, ruling{checks.Unknown, checks.None, false, ""}, t.Name+" has no result", "")
	}
}

func (t *tally) pass(test Test) {
	if software(test) {
		t.software = append(t.software, test.Name)
	} else {
		t.passed = append(t.passed, test.Name)
	}
}

// error adds the finding of one error, and reports whether it leaves a pass standing.
func (j *judge) error(t Test, r Row, e Error) bool {
	ru := rule(e, r.Status)
	if settings[t.Name] && e.Code < 0 && e.Severity == Unsaid && ru.action == checks.Drain {
		ru.action = checks.FixConfig
	}
	code := max(e.Code, 0)
	text := e.Text
	if m, ok := Means(code); ok && code > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s (%s)", text, m.Name))
	}
	reason := fmt.Sprintf("%s: %s", t.Name, text)
	if r.Status == Passed {
		reason = fmt.Sprintf("%s passed, but says: %s", t.Name, text)
	}
	if name, ok := j.policy.Actions[code]; ok && code > 0 {
		ru = ruled(ru, name)
	}
	j.add(r.Entity, code, ru, reason, e.Text)
	return ru.verdict == checks.Pass || ru.verdict == checks.NotApplicable
}

// ruled gives what follows when policy names an action for a code. One that suspects no hardware makes no fault.
func ruled(r ruling, name string) ruling {
	var a checks.Action
	if a.UnmarshalText([]byte(name)) != nil {
		return r // policy.Validate refuses it
	}
	out := ruling{verdict: checks.Fail, action: a, hard: r.hard && a == r.action, why: "action by policy"}
	if a.Harmless() {
		out.verdict = checks.NotApplicable
	}
	return out
}

// add adds a finding; one that says the same of the same as another is counted with it.
func (j *judge) add(e Entity, code int, r ruling, reason, evidence string) {
	f := checks.Finding{
		Check: ID, Code: code, Subject: j.subject(e), Verdict: r.verdict, Action: r.action, Hard: r.hard && r.verdict == checks.Fail,
		Reason: oneLine(reason), Evidence: evidence,
	}
	switch e.Group {
	case OfCPU:
		f.Reason = fmt.Sprintf("CPU %d: %s", e.ID, f.Reason)
	case OfSwitch:
		f.Reason = fmt.Sprintf("NVSwitch %d: %s", e.ID, f.Reason)
	}
	if r.why != "" {
		f.Reason += "; " + r.why
	}
	for i := range j.found {
		if g := &j.found[i]; g.Reason == f.Reason && g.Code == f.Code && sameSubject(g.Subject, f.Subject) {
			g.Count = max(g.Count, 1) + 1
			return
		}
	}
	j.found = append(j.found, f)
}

func sameSubject(a, b checks.Subject) bool {
	if (a.GPUIndex == nil) != (b.GPUIndex == nil) || a.GPUIndex != nil && *a.GPUIndex != *b.GPUIndex {
		return false
	}
	return a.Kind == b.Kind && a.GPUUUID == b.GPUUUID
}

// subject names an entity.
func (j *judge) subject(e Entity) checks.Subject {
	if e.Group != OfGPU {
		return checks.Subject{Kind: checks.KindNode, Node: j.node}
	}
	serial := ""
	for _, g := range j.report.GPUs {
		if g.Index == e.ID {
			serial = g.Serial
		}
	}
	return nameGPU(j.node, j.known, e.ID, func(g checks.GPU) bool { return serial != "" && g.Serial == serial }, serial != "")
}

// nameGPU names DCGM's GPU number id: the one known that same recognizes, or the one of that index when DCGM gives nothing
// to recognize it by. DCGM numbers GPUs as NVML does, but for those that came later.
func nameGPU(node string, known []checks.GPU, id int, same func(checks.GPU) bool, sure bool) checks.Subject {
	for _, g := range known {
		if same(g) || !sure && g.Index == id {
			return checks.GPU{Node: node, UUID: g.UUID, Index: g.Index, PCI: g.PCI}.Subject()
		}
	}
	return checks.Subject{Kind: checks.KindGPU, Node: node, GPUIndex: &id}
}

// summaries says of each GPU, and of the node where results are not told by GPU, that it passed or was not tested.
func (j *judge) summaries() {
	var ids []int
	for id := range j.gpus {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		j.summary(Entity{OfGPU, id}, j.gpus[id], j.hardware)
	}
	// Beside GPUs the node's own results are the software's, which say nothing of hardware.
	w := &j.whole
	if len(w.passed)+len(w.software) > 0 || len(ids) == 0 && len(j.report.Tests) > 0 {
		j.summary(Entity{}, w, j.hardware && len(ids) == 0)
	}
}

// summary adds an entity's pass, or that it was not tested, where nothing else has been said.
func (j *judge) summary(e Entity, t *tally, hardware bool) {
	if t.settled {
		return
	}
	done := append(slices.Clone(t.software), t.passed...)
	slices.Sort(t.skipped)
	skipped := slices.Concat(t.skipped, j.skipped)
	if e == (Entity{}) && !hardware {
		skipped = t.skipped // tests of software
	}
	switch {
	case len(t.passed) > 0, !hardware && len(t.software) > 0:
		reason := fmt.Sprintf("passed: %s", list(done))
		if len(skipped) > 0 {
			reason += "; not tested: " + list(skipped)
		}
		j.add(e, 0, ruling{verdict: checks.Pass}, reason, "")
	case len(skipped) > 0:
		j.add(e, 0, ruling{}, "not tested: no test of hardware ran; skipped: "+list(skipped), "")
	default:
		j.add(e, 0, ruling{}, "not tested: no test of hardware ran", "")
	}
}

// troubles says what is wrong with the report as a whole. None of it is a fault of hardware.
func (j *judge) troubles() {
	r := j.report
	open := func(format string, args ...any) { j.add(Entity{}, 0, ruling{}, fmt.Sprintf(format, args...), "") }
	for _, t := range r.Runtime {
		open("the diagnostic did not run: %s", t)
	}
	switch {
	case r.Broken > 0:
		open("the output stops being JSON %d bytes into it", r.Broken)
	case r.Cut:
		open("the output is cut short")
	case r.Runs == 0 && len(r.Runtime) == 0 && r.Exit != nil && *r.Exit != 0:
		open("the output holds no result of the diagnostic; dcgmi ended with %s", ExitText(*r.Exit))
	case r.Runs == 0 && len(r.Runtime) == 0:
		open("the output holds no result of the diagnostic")
	case len(r.Tests) == 0 && len(r.Runtime) == 0:
		open("the diagnostic ran no test")
	}
	// An error that asks for something, or a test without an answer, is reason enough for a status that is not 0.
	faulty := slices.ContainsFunc(j.found, func(f checks.Finding) bool {
		return f.Code != 0 || f.Verdict == checks.Fail || f.Verdict == checks.Unknown
	})
	if statusOf(r.Overall) == Failed && !faulty {
		open("the overall result is a failure, and no test says why")
	}
	if r.Exit != nil && *r.Exit != 0 && !faulty {
		open("dcgmi ended with %s, and no test says why", ExitText(*r.Exit))
	}
}

// list names tests, each once.
func list(names []string) string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return strings.Join(out, ", ")
}
