package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// A Status is what `assay-agent status` shows.
type Status struct {
	Node        string             `json:"node"`
	Version     string             `json:"version"`
	BootID      string             `json:"boot_id"`
	Enrolled    bool               `json:"enrolled"` // a desired state has been received at some time
	State       string             `json:"state,omitempty"`
	Marks       []string           `json:"marks,omitempty"`
	Managed     bool               `json:"managed"`
	Mode        string             `json:"mode"`
	Certificate *StatusCertificate `json:"certificate,omitempty"`
	Tombstone   *Tombstone         `json:"tombstone,omitempty"`
	FastPath    bool               `json:"fast_path"`             // a prolog for the whole node would pass on the certificate now
	Why         string             `json:"why,omitempty"`         // why not
	SnapshotAge *float64           `json:"snapshot_age_seconds"`  // null before the first
	ContactAge  *float64           `json:"contact_age_seconds"`   // since the control plane was heard; null when not in this boot
	Verdict     checks.Verdict     `json:"verdict"`               // of the last snapshot
	Kernel      StatusKernel       `json:"kernel_log"`            //
	GPUs        []checks.GPU       `json:"gpus"`                  //
	Faults      []checks.Finding   `json:"faults,omitempty"`      // remembered in this boot
	OpenFaults  []checks.Finding   `json:"open_faults,omitempty"` // of the kernel log, not answered by a later certificate
	Jobs        []string           `json:"jobs,omitempty"`
	Unsent      int                `json:"unsent"` // reports in the spool
	Policy      int                `json:"policy_version"`
}

// A StatusCertificate is the certificate at hand, with what is left of it on the boot clock.
type StatusCertificate struct {
	Serial         uint64       `json:"serial"`
	Level          checks.Level `json:"level"`
	GPUs           int          `json:"gpus"`
	Remaining      float64      `json:"remaining_seconds"`
	GraceRemaining float64      `json:"grace_remaining_seconds"`
	Suspended      bool         `json:"suspended,omitempty"`
	Untrusted      string       `json:"untrusted,omitempty"`
}

// StatusKernel is how far the kernel log has been read.
type StatusKernel struct {
	Drained bool   `json:"drained"`
	Records uint64 `json:"records"` // in this run
	Lost    uint64 `json:"lost"`
	Err     string `json:"err,omitempty"`
}

// Status says where the agent stands.
func (a *Agent) Status(ctx context.Context) (Status, error) {
	var st Status
	err := a.call(ctx, func() { st = a.status() })
	return st, err
}

func (a *Agent) status() Status {
	s := a.state()
	st := Status{
		Node: a.cfg.Node, Version: a.cfg.Version, BootID: a.bootID, Enrolled: s.Known, State: s.Node, Marks: s.Marks, Managed: s.Managed,
		Mode: string(s.Policy.Mode), Tombstone: s.Tombstone, Kernel: StatusKernel{s.Kernel.Drained, s.Kernel.Records, s.Kernel.Lost, s.Kernel.Err},
		GPUs: a.inventory.GPUs, Faults: a.ledger.Faults(), OpenFaults: a.kernel.Open, Unsent: a.cfg.Outbox.Waiting(), Policy: s.Policy.Version,
		Verdict: checks.FoldFindings(a.lastFound),
	}
	st.FastPath, st.Why = s.fast(s.allUUIDs())
	if why, ok := s.notOurs(); ok {
		st.FastPath, st.Why = false, why
	}
	if s.Snapshot != nil {
		st.SnapshotAge = new((s.Now - s.Snapshot.At).Seconds())
	}
	if s.Contact != nil {
		st.ContactAge = new((s.Now - *s.Contact).Seconds())
	}
	if h := s.Held; h != nil {
		st.Certificate = &StatusCertificate{
			Serial: h.Serial, Level: h.Level, GPUs: len(h.GPUs), Suspended: h.Suspended, Untrusted: h.Untrusted,
			Remaining: max(0, h.Expires-s.Now).Seconds(), GraceRemaining: max(0, h.GraceUntil-s.Now).Seconds(),
		}
	}
	for _, j := range a.jobs {
		if !j.Refused {
			st.Jobs = append(st.Jobs, j.Job.ID)
		}
	}
	return st
}

// oneLine is the status in one line, for systemd and the health check. It runs in the loop.
func (a *Agent) oneLine() string {
	s := a.state()
	line := s.Node
	switch {
	case !s.Known:
		line = "not enrolled"
	case !s.Managed:
		line = "not managed"
	}
	switch h := s.Held; {
	case h == nil:
		line += ", no certificate"
	case s.Tombstone.Covers(h.Serial):
		line += fmt.Sprintf(", certificate %d void: %s", h.Serial, s.Tombstone.Reason)
	case h.Suspended:
		line += fmt.Sprintf(", certificate %d suspended", h.Serial)
	default:
		line += fmt.Sprintf(", certificate %d %s, %s left", h.Serial, h.Level, max(0, h.Expires-s.Now).Round(time.Minute))
	}
	switch {
	case s.Snapshot == nil:
		line += ", no snapshot yet"
	case s.Snapshot.Clean:
		line += fmt.Sprintf(", clean %.0f s ago", (s.Now - s.Snapshot.At).Seconds())
	default:
		line += fmt.Sprintf(", %.0f s ago: %s", (s.Now - s.Snapshot.At).Seconds(), s.Snapshot.Why)
	}
	return line
}
