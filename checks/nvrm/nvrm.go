// Package nvrm judges what the GPU driver writes to the kernel log in words, without a number: a GPU that does not come up,
// one that was lost or wants a reset, firmware that hangs, links that do not train.
//
// Such a sentence mostly stands beside an XID, and is then a consequence. Where it stands alone it is all there is: GPUs
// have been lost without any XID (NVIDIA/NVSentinel 155), and resets been asked for by an assertion only (sichek 51).
//
// Sources: NVIDIA/open-gpu-kernel-modules osinit.c, osapi.c, nv.c, nv-pci.c, kernel_gsp.c, kernel_nvlink*.c, nv_gpu_ops.c,
// nvstatuscodes.h; Linux drivers/base/dd.c for a probe that failed.
package nvrm

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// ID is the check's catalog id.
const ID = "nvrm"

// An Event is one line.
type Event struct {
	Kind  Kind
	PCI   string // of the GPU, as 0000:3b:00.0; empty when the line does not say
	GPU   int    // the driver's own number of it; -1 when the line does not say
	UUID  string // of Kind Identity
	After bool   // it follows on another line on the same thing, and counts only without it
	Raw   string
}

// A Kind says what a line tells.
type Kind uint8

const (
	Identity      Kind = iota // which GPU the lines after it speak of; no event of its own
	InitFailed                // a GPU could not be brought up
	Lost                      // a call came back with: the GPU is lost
	ResetRequired             // a call came back with: the GPU must be reset
	RebootNeeded              // unified memory is broken until the next boot
	Heartbeat                 // the GPU's firmware does not show signs of life
	LinkTraining              // NVLinks did not train when the driver came up
	LinksInactive             // a tool says that all of a GPU's links are inactive
	Peermem                   // a peer memory client's bookkeeping; software
	NoPower                   // a GPU's power cables are not connected
	ProbeFailed               // the driver did not take a GPU
	Unsupported               // the driver is not made for a GPU
	Mismatch                  // a client's libraries are not of the driver's version
)

// kinds is how each kind is known, and what it asks for. A tool that fails to run says nothing of the hardware, and a job may
// bring libraries of its own: those take no node out. Whether the node's own fit, the check driver tells.
var kinds = [...]struct {
	action checks.Action
	hard   bool
	text   string
}{
	InitFailed:    {checks.Reboot, true, "the driver could not bring up a GPU"},
	Lost:          {checks.Reboot, true, "the driver has lost a GPU"},
	ResetRequired: {checks.ResetGPU, true, "the driver wants a GPU reset"},
	RebootNeeded:  {checks.Reboot, true, "unified memory is broken until the node reboots"},
	Heartbeat:     {checks.ResetGPU, false, "a GPU's firmware shows no sign of life"},
	LinkTraining:  {checks.Reboot, false, "NVLinks did not train when the driver came up; count them after the reboot"},
	LinksInactive: {checks.Watch, false, "all NVLinks of a GPU are inactive, a tool says; their state decides"},
	Peermem:       {checks.None, false, "peer memory bookkeeping; software"},
	NoPower:       {checks.Drain, false, "a GPU's power cables are not connected"},
	ProbeFailed:   {checks.Reboot, false, "the driver did not take a GPU; count them after the reboot"},
	Unsupported:   {checks.FixConfig, false, "this driver is not made for a GPU"},
	Mismatch:      {checks.Watch, false, "a program brought libraries of another version than the driver's"},
}

// sentences are looked for in this order; the first that a line holds decides.
var sentences = [...]struct {
	words string
	kind  Kind
	after bool
}{
	{"RmInitAdapter failed!", InitFailed, false},
	{"rm_init_adapter failed", InitFailed, true},
	{"necessary power cables connected", NoPower, false},
	{"installed in this system is not supported by", Unsupported, false},
	{"does not include the required GPU", Unsupported, true},
	{"NVIDIA probe routine failed for", ProbeFailed, true},
	{"None of the NVIDIA ", ProbeFailed, true},
	{"API mismatch: ", Mismatch, false},
	{"requiring os reboot to recover", RebootNeeded, false},
	{"[NV_ERR_GPU_IS_LOST]", Lost, true},
	{"[NV_ERR_RESET_REQUIRED]", ResetRequired, false},
	{"eartbeat timed out", Heartbeat, true},
	{"postRxDetLinkMask failed", LinkTraining, false},
	{"Failed to update Rx Detect Link mask", LinkTraining, true},
}

// Parse reads one line of the kernel log, with any prefix; false for one that says none of this. It never panics, and
// allocates nothing for a line it refuses.
func Parse(line string) (Event, bool) {
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	e := Event{GPU: -1}
	at := strings.Index(line, "NVRM: ")
	if at < 0 {
		switch {
		case strings.Contains(line, "all links are inActive"):
			e.Kind = LinksInactive
		case strings.Contains(line, "nvidia-peermem ") && strings.Contains(line, "invalid context"):
			e.Kind = Peermem
		case e.probe(line):
		default:
			return Event{}, false
		}
		e.Raw = checks.OneLine(line)
		return e, true
	}
	said := line[at+len("NVRM: "):]
	if e.identity(said) {
		e.Raw = checks.OneLine(line)
		return e, true
	}
	for _, s := range sentences {
		i := strings.Index(said, s.words)
		if i < 0 {
			continue
		}
		e.Kind, e.After = s.kind, s.after
		e.who(said[:i])
		e.Raw = checks.OneLine(line)
		return e, true
	}
	return Event{}, false
}

// identity reads "GPU at PCI:0000:91:00: GPU-…" and "The NVIDIA GPU 0000:17:00.0", the first line of a sentence in four.
func (e *Event) identity(s string) bool {
	if rest, ok := strings.CutPrefix(s, "GPU at PCI:"); ok {
		pci, uuid, ok := strings.Cut(rest, ": ")
		uuid, _, _ = strings.Cut(uuid, " ")
		e.PCI, e.UUID = checks.PCIAddress(pci), checks.OneLine(uuid)
		return ok && e.PCI != "" && strings.HasPrefix(e.UUID, "GPU-")
	}
	if rest, ok := strings.CutPrefix(s, "The NVIDIA GPU "); ok && !strings.Contains(s, "fallen off") && !strings.Contains(s, "installed in this system is not supported by") {
		n := 0
		for n < len(rest) && strings.IndexByte("0123456789abcdefABCDEF:.", rest[n]) >= 0 {
			n++
		}
		e.PCI = checks.PCIAddress(rest[:n])
		return e.PCI != ""
	}
	return false
}

// probe reads the kernel's own word for a device that a driver did not take: "nvidia: probe of 0000:02:00.0 failed with error
// -1" and, since Linux 6.9, "nvidia 0000:02:00.0: probe with driver nvidia failed with error -1".
func (e *Event) probe(line string) bool {
	const older, newer = "nvidia: probe of ", ": probe with driver nvidia failed"
	if i := strings.Index(line, older); i >= 0 {
		pci, rest, _ := strings.Cut(line[i+len(older):], " ")
		e.Kind, e.PCI = ProbeFailed, checks.PCIAddress(pci)
		return e.PCI != "" && strings.HasPrefix(rest, "failed with error")
	}
	if i := strings.Index(line, newer); i >= 0 {
		e.Kind, e.PCI = ProbeFailed, checks.PCIAddress(line[strings.LastIndexAny(line[:i], " ;")+1:i])
		return e.PCI != ""
	}
	return false
}

// who reads which GPU a line speaks of, from its words before the sentence: "GPU 0000:01:00.0: " or "GPU4 ".
func (e *Event) who(s string) {
	for f := range strings.FieldsSeq(s) {
		f = strings.TrimRight(f, ":,")
		if a := checks.PCIAddress(f); a != "" {
			e.PCI = a
			return
		}
		if n, ok := strings.CutPrefix(f, "GPU"); ok && n != "" && len(n) <= 2 && strings.Trim(n, "0123456789") == "" {
			e.GPU = int(n[0] - '0')
			if len(n) == 2 {
				e.GPU = 10*e.GPU + int(n[1]-'0')
			}
		}
	}
}

// Judge turns a line into a finding without time, node and boot id. A line that only says which GPU is meant is not for it.
func Judge(e Event) checks.Finding {
	f := checks.Finding{Check: ID, Subject: checks.Subject{Kind: checks.KindNode}, Verdict: checks.NotApplicable, Evidence: e.Raw}
	if e.PCI != "" {
		f.Subject.Kind, f.Subject.PCI = checks.KindGPU, e.PCI
	}
	if e.Kind == Identity || int(e.Kind) >= len(kinds) {
		f.Action, f.Reason = checks.Watch, "a line that this version does not judge"
		return f
	}
	k := kinds[e.Kind]
	f.Action, f.Reason = k.action, k.text
	if e.PCI == "" && e.GPU >= 0 {
		f.Reason += fmt.Sprintf(" (number %d of the driver's)", e.GPU)
	}
	if !k.action.Harmless() {
		f.Verdict, f.Hard = checks.Fail, k.hard
	}
	return f
}
