package checks

import "time"

// A Kind says what a Subject is.
type Kind string

const (
	KindNode   Kind = "node"
	KindGPU    Kind = "gpu"
	KindMIG    Kind = "mig"
	KindLink   Kind = "link"
	KindPort   Kind = "port"
	KindSM     Kind = "sm"
	KindSwitch Kind = "switch"
)

// A Subject is the thing a finding is about. Only the fields that its kind needs are set.
type Subject struct {
	Kind     Kind   `json:"kind"`
	Node     string `json:"node,omitempty"`
	GPUUUID  string `json:"gpu_uuid,omitempty"`
	GPUIndex *int   `json:"gpu_index,omitempty"` // as the driver counts them now; nil when not known
	PCI      string `json:"pci,omitempty"`       // domain:bus:device.function, as 0000:3b:00.0
	MIG      string `json:"mig,omitempty"`
	Link     *int   `json:"link,omitempty"`
	Port     string `json:"port,omitempty"`
	SM       *int   `json:"sm,omitempty"`
}

// Key names the subject in one word that stays the same when devices are counted anew: the GPU's UUID or,
// when that is not known, its PCI address; then MIG instance, link, port and SM.
func (s Subject) Key() string {
	k := string(s.Kind)
	switch {
	case s.GPUUUID != "":
		k += "/" + s.GPUUUID
	case s.PCI != "":
		k += "/" + s.PCI
	}
	if s.MIG != "" {
		k += "/mig" + s.MIG
	}
	if s.Link != nil {
		k += "/link" + itoa(*s.Link)
	}
	if s.Port != "" {
		k += "/port" + s.Port
	}
	if s.SM != nil {
		k += "/sm" + itoa(*s.SM)
	}
	return k
}

// A Finding is a verdict on one subject with its reason and the action it asks for.
type Finding struct {
	Check     string    `json:"check"`          // the catalog id, such as "rowremap"
	Code      int       `json:"code,omitempty"` // XID, SXid or DCGM number; 0 when there is none
	Subject   Subject   `json:"subject"`
	Verdict   Verdict   `json:"verdict"`
	Action    Action    `json:"action"`
	Hard      bool      `json:"hard"`   // a Fail that revokes the certificate at once; set by the check
	Reason    string    `json:"reason"` // one line for a person: what was seen, in numbers
	Count     int       `json:"count,omitempty"`
	Incident  string    `json:"incident,omitempty"`  // shared by findings with one root cause
	Secondary bool      `json:"secondary,omitempty"` // a consequence of another finding of the incident
	At        time.Time `json:"at"`
	BootID    string    `json:"boot_id,omitempty"`
	Evidence  string    `json:"evidence,omitempty"` // the raw line or value judged
	Drill     string    `json:"drill,omitempty"`    // id of the drill that made it up: it is no fault of anything

	Of    string `json:"-"` // which of the subject's parts that no field names, such as a task or a disk; several, one a line. Also reads it
	Cause int    `json:"-"` // the XID that the log line names as its cause; 0 when it names none. GroupIncidents reads it
	Peer  bool   `json:"-"` // it may be how this part sees another part's fault. GroupIncidents reads it
	Back  bool   `json:"-"` // the driver takes its verdict on this GPU back: what it asked for has been done
}

// HardFault reports whether the finding revokes a certificate: a hard Fail that is no consequence of another finding. A
// drill's is none.
func (f Finding) HardFault() bool {
	return f.Verdict == Fail && f.Hard && !f.Secondary && f.Drill == ""
}

// SoftFault reports whether the finding makes a node suspect: a Fail that is neither hard nor a consequence, nor a drill's.
func (f Finding) SoftFault() bool {
	return f.Verdict == Fail && !f.Hard && !f.Secondary && f.Drill == ""
}

// FoldFindings folds the verdicts of fs. Secondary findings do not count.
func FoldFindings(fs []Finding) Verdict {
	vs := make([]Verdict, 0, len(fs))
	for _, f := range fs {
		if !f.Secondary {
			vs = append(vs, f.Verdict)
		}
	}
	return Fold(vs...)
}

// Worst returns the finding that decides: a hard fault before a soft one, then the severest action; false when
// fs holds no Fail.
func Worst(fs []Finding) (Finding, bool) {
	var worst Finding
	found := false
	for _, f := range fs {
		if f.Verdict != Fail || f.Secondary {
			continue
		}
		if !found || f.Hard && !worst.Hard || f.Hard == worst.Hard && f.Action > worst.Action {
			worst, found = f, true
		}
	}
	return worst, found
}
