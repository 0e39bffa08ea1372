package dcgm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// A Health is what DCGM's health watches said at one moment.
type Health struct {
	Have      checks.Availability `json:"have"`          // NotSupported: there is no DCGM on the node
	Err       string              `json:"err,omitempty"` // why Have is Unread
	Stuck     string              `json:"stuck,omitempty"`
	Version   string              `json:"version,omitempty"` // of the library, or of the host engine asked
	Watched   time.Duration       `json:"watched"`           // how long the watches have been set
	GPUs      []HealthGPU         `json:"gpus,omitempty"`
	Incidents []Incident          `json:"incidents,omitempty"`
	Full      bool                `json:"full,omitempty"` // there were more incidents than DCGM had room for
	Policies  []Policy            `json:"policies,omitempty"`
}

// A HealthGPU is a GPU as DCGM knows it.
type HealthGPU struct {
	ID   int    `json:"id"` // DCGM's own number
	UUID string `json:"uuid,omitempty"`
	PCI  string `json:"pci,omitempty"`
}

// An Incident is one thing that a health watch has seen. Source: dcgm_structs.h, dcgmIncidentInfo_t.
type Incident struct {
	System int    `json:"system"` // a bit of dcgmHealthSystems_t
	Result int    `json:"result"` // dcgmHealthWatchResults_t: 0 pass, 10 warning, 20 failure
	Code   int    `json:"code"`   // dcgmError_t
	Text   string `json:"text"`
	Group  Group  `json:"group"`
	ID     int    `json:"id"`
}

// A Policy is what the host engine itself does about errors of one GPU. Source: dcgm_structs.h, dcgmPolicy_v1.
type Policy struct {
	GPU       int `json:"gpu"`
	Condition int `json:"condition"` // bits of dcgmPolicyCondition_t that it looks for; 0 for none
	Isolation int `json:"isolation"` // dcgmPolicyIsolation_t; 0 for none
	Action    int `json:"action"`    // dcgmPolicyAction_t: 0 none, 1 resets the GPU
}

// Values of Incident.Result.
const (
	resultWarn = 10
	resultFail = 20
)

// systemNames are the bits of dcgmHealthSystems_t.
var systemNames = map[int]string{
	0x1: "PCIe", 0x2: "NVLink", 0x4: "power management unit", 0x8: "micro-controller", 0x10: "memory", 0x20: "SM", 0x40: "infoROM", 0x80: "thermal",
	0x100: "power", 0x200: "driver", 0x400: "NVSwitch (non-fatal)", 0x800: "NVSwitch (fatal)",
}

func systemName(bit int) string {
	if n, ok := systemNames[bit]; ok {
		return n
	}
	return fmt.Sprintf("system %#x", bit)
}

// JudgeHealth turns what the health watches said into findings: one for each incident, and one for each GPU without any. A
// silence counts once the watches have been set for as long as they need (policy dcgm.settle). Without DCGM nothing is
// known, or nothing is to be: policy dcgm.required. It does no I/O.
func JudgeHealth(node string, known []checks.GPU, h Health, p policy.DCGM) []checks.Finding {
	whole := checks.Subject{Kind: checks.KindNode, Node: node}
	one := func(v checks.Verdict, a checks.Action, hard bool, reason string) []checks.Finding {
		return []checks.Finding{{Check: HealthID, Subject: whole, Verdict: v, Action: a, Hard: hard, Reason: reason}}
	}
	switch {
	case h.Stuck != "":
		return one(checks.Fail, checks.Reboot, true, fmt.Sprintf("a process that called %s is still there after SIGKILL", h.Stuck))
	case h.Have == checks.NotSupported && p.Required:
		return one(checks.Unknown, checks.None, false, "policy requires DCGM, and it is not there: "+orNothing(h.Err))
	case h.Have == checks.NotSupported:
		return one(checks.NotApplicable, checks.None, false, "no DCGM on this node")
	case h.Have != checks.Read:
		return one(checks.Unknown, checks.None, false, "DCGM gave no answer: "+orNothing(h.Err))
	}
	var out []checks.Finding
	add := func(s checks.Subject, code int, r ruling, reason, evidence string) {
		out = append(out, checks.Finding{
			Check: HealthID, Code: code, Subject: s, Verdict: r.verdict, Action: r.action, Hard: r.hard && r.verdict == checks.Fail,
			Reason: oneLine(reason), Evidence: evidence,
		})
	}
	settled := map[int]bool{}
	for _, i := range h.Incidents {
		s, what := whole, systemName(i.System)
		switch i.Group {
		case OfGPU:
			s = h.subject(node, known, i.ID)
		case OfSwitch:
			what = fmt.Sprintf("NVSwitch %d: %s", i.ID, what)
		case OfCPU:
			what = fmt.Sprintf("CPU %d: %s", i.ID, what)
		}
		r := h.rule(i, p)
		reason := fmt.Sprintf("%s: %s", what, i.Text)
		if m, ok := Means(i.Code); ok && i.Code > 0 {
			reason += fmt.Sprintf(" (%s)", m.Name)
		}
		if r.why != "" {
			reason += "; " + r.why
		}
		add(s, i.Code, r, reason, i.Text)
		if i.Group == OfGPU && r.verdict != checks.Pass && r.verdict != checks.NotApplicable {
			settled[i.ID] = true
		}
	}
	for _, g := range h.GPUs {
		if settled[g.ID] {
			continue
		}
		s := h.subject(node, known, g.ID)
		if h.Full {
			add(s, 0, ruling{}, "DCGM reports as many incidents as it has room for; there may be more", "")
		} else if policy.Duration(h.Watched) < p.Settle {
			add(s, 0, ruling{}, fmt.Sprintf("no incident, but watched for %s of %s only", h.Watched.Round(time.Second), p.Settle), "")
		} else {
			add(s, 0, ruling{verdict: checks.Pass}, "no incident", "")
		}
	}
	if len(h.GPUs) == 0 && len(out) == 0 {
		add(whole, 0, ruling{}, "DCGM knows no GPU", "")
	}
	for _, q := range h.Policies {
		if q.Action != 0 {
			add(h.subject(node, known, q.GPU), 0, ruling{verdict: checks.Pass, action: checks.Watch}, "a policy of DCGM's own resets this GPU: two masters", "")
		}
	}
	return out
}

// rule says what follows from an incident.
func (h Health) rule(i Incident, p policy.DCGM) ruling {
	s := StatusUnknown
	switch i.Result {
	case 0:
		s = Passed
	case resultWarn:
		s = Warned
	case resultFail:
		s = Failed
	}
	r := rule(Error{Code: i.Code, Category: -1, Severity: Unsaid, Text: i.Text}, s)
	if name, ok := p.Actions[i.Code]; ok {
		r = ruled(r, name)
	}
	return r
}

// subject names DCGM's GPU number id by the UUID or address that DCGM gives it.
func (h Health) subject(node string, known []checks.GPU, id int) checks.Subject {
	i := slices.IndexFunc(h.GPUs, func(g HealthGPU) bool { return g.ID == id })
	if i < 0 {
		return nameGPU(node, known, id, func(checks.GPU) bool { return false }, false)
	}
	g := h.GPUs[i]
	s := nameGPU(node, known, id, func(k checks.GPU) bool {
		return g.UUID != "" && k.UUID == g.UUID || g.UUID == "" && g.PCI != "" && k.PCI == g.PCI
	}, g.UUID != "" || g.PCI != "")
	if s.GPUUUID == "" {
		s.GPUUUID, s.PCI = g.UUID, strings.ToLower(g.PCI)
	}
	return s
}

func orNothing(why string) string {
	if why == "" {
		return "nobody says why"
	}
	return why
}
