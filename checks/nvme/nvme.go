// Package nvme judges a node's NVMe disks: as many as policy says, or the ones this node has shown, each at work, writable and not
// too hot, and what its own health log says.
//
// A controller that has failed stays in sysfs in the state dead, or goes away; both lose the disk. Temperatures are the
// composite of the drive, its limits the drive's own. Sources: Linux drivers/nvme/host (state), Documentation/hwmon
// (temp1_crit: the drive's critical composite temperature), Azure/azurehpc-health-checks (count), NVM Express Base
// Specification 2.0, 5.16.1.3 (health log).
package nvme

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/tally"
)

// ID is the check's catalog id.
const ID = "nvme"

// A Reading is the node's NVMe disks.
type Reading struct {
	Have    checks.Availability `json:"have"` // NotSupported: the kernel shows no NVMe
	Err     string              `json:"err,omitempty"`
	Disks   []Disk              `json:"disks,omitempty"`   // by name
	Learned []string            `json:"learned,omitempty"` // identities this node has shown; Track fills it
}

// A Disk is one NVMe controller.
type Disk struct {
	Name        string `json:"name"` // nvme0
	PCI         string `json:"pci,omitempty"`
	Model       string `json:"model,omitempty"`
	Serial      string `json:"serial,omitempty"`
	State       string `json:"state,omitempty"` // live, resetting, connecting, deleting, dead …; empty on kernels that do not say
	Err         string `json:"err,omitempty"`   // why it could not be read
	Size        uint64 `json:"size"`            // bytes of its namespaces together
	ReadOnly    bool   `json:"read_only,omitempty"`
	Temperature int    `json:"temperature,omitempty"` // thousandths of a degree Celsius; 0 when unread
	Critical    int    `json:"critical,omitempty"`    // the drive's own limit, likewise
	Health      Health `json:"health,omitzero"`
}

// A Health is what the disk's SMART / Health Information log says (NVM Express Base Specification, log page 02h).
type Health struct {
	Have        checks.Availability `json:"have,omitempty"` // NotSupported: the kernel or the disk does not offer it
	Err         string              `json:"err,omitempty"`
	Refused     bool                `json:"refused,omitempty"`   // who reads may not: it says nothing of the disk
	Warning     uint64              `json:"warning,omitempty"`   // bits: see warnings
	Spare       uint64              `json:"spare"`               // percent of the spare blocks that are left
	Threshold   uint64              `json:"threshold,omitempty"` // of Spare, below which the disk warns
	Used        uint64              `json:"used,omitempty"`      // percent of the life that its maker gives it; may pass 100
	MediaErrors uint64              `json:"media_errors,omitempty"`
	Age         uint64              `json:"age,omitempty"` // seconds since the disk said so: it is asked every ten minutes, and in a screen
}

// warnings are the bits of the critical warning.
var warnings = [...]string{
	"its spare blocks run out", "its temperature is beyond a limit", "it is not reliable any more", "it has gone read-only", "its backup of what it has in memory failed",
	"its persistent memory is not reliable any more",
}

// Identity names the disk over boots and changed names.
func (d Disk) Identity() string { return strings.TrimSpace(d.Model + " " + d.Serial) }

// Track fills in what was learned, and learns. A disk that is new stands for one that is gone: someone has changed it.
func Track(learned *[]string, r Reading) Reading {
	shown := func(id string) bool {
		return slices.ContainsFunc(r.Disks, func(d Disk) bool { return d.Identity() == id })
	}
	for _, d := range r.Disks {
		id := d.Identity()
		if id == "" || d.Err != "" || slices.Contains(*learned, id) {
			continue
		}
		if i := slices.IndexFunc(*learned, func(l string) bool { return !shown(l) }); i >= 0 {
			(*learned)[i] = id
			continue
		}
		*learned = append(*learned, id)
	}
	r.Learned = slices.Clone(*learned)
	return r
}

// Judge does no I/O.
func Judge(r Reading, p policy.NVMe) checks.Finding {
	if r.Have == checks.Unread {
		return tally.Unread(ID, "NVMe disks", r.Err)
	}
	t := tally.New(ID)
	if p.Count > 0 {
		if len(r.Disks) < p.Count {
			t.Fault(checks.Drain, "%d disks, policy wants %d", len(r.Disks), p.Count)
		}
	} else {
		for _, id := range r.Learned {
			if !slices.ContainsFunc(r.Disks, func(d Disk) bool { return d.Identity() == id }) {
				t.Fault(checks.Drain, "disk %s is gone", id)
			}
		}
	}
	for _, d := range r.Disks {
		judge(t, d, p)
	}
	if len(r.Disks) == 0 && p.Count == 0 && len(r.Learned) == 0 {
		f := t.Finding("", "")
		f.Verdict, f.Reason = checks.NotApplicable, "the node has no NVMe disk"
		return f
	}
	return t.Finding(evidence(r), fmt.Sprintf("%d disks at work", len(r.Disks)))
}

func judge(t *tally.Tally, d Disk, p policy.NVMe) {
	switch {
	case d.Err != "":
		t.Doubt("%s not read: %s", d.Name, d.Err)
		return
	case d.State == "dead" || strings.HasPrefix(d.State, "deleting"):
		t.Fault(checks.Drain, "%s (%s) is %s", d.Name, d.Identity(), d.State)
		return
	case d.State != "live" && d.State != "":
		t.Doubt("%s (%s) is %s", d.Name, d.Identity(), d.State)
	}
	if d.ReadOnly {
		t.Fault(checks.Drain, "%s (%s) has turned read-only", d.Name, d.Identity())
	}
	health(t, d, p)
	limit := d.Critical - 1000*p.Margin
	if d.Critical > 0 && d.Temperature >= limit {
		t.Watch("%s (%s) is at %d °C, its limit is %d", d.Name, d.Identity(), d.Temperature/1000, d.Critical/1000)
	}
}

func (h Health) String() string {
	if h.Have != checks.Read {
		return ""
	}
	return fmt.Sprintf(" warning=%d spare=%d threshold=%d used=%d media_errors=%d age=%ds", h.Warning, h.Spare, h.Threshold, h.Used, h.MediaErrors, h.Age)
}

// health judges what the disk says of itself. On a disk that is not at work nothing was asked.
func health(t *tally.Tally, d Disk, p policy.NVMe) {
	h := d.Health
	switch {
	case h.Have == checks.NotSupported:
		return
	case h.Refused:
		t.Watch("%s: its health log may not be read from here: %s", d.Name, h.Err)
		return
	case h.Err != "":
		t.Doubt("%s: its health log was not read: %s", d.Name, h.Err)
		return
	case h.Have != checks.Read:
		return
	}
	for bit := range 8 {
		if h.Warning>>bit&1 == 0 {
			continue
		}
		what := fmt.Sprintf("it warns with bit %d", bit)
		if bit < len(warnings) {
			what = warnings[bit]
		}
		say := t.Watch
		if p.FailWarnings>>bit&1 == 1 {
			say = func(format string, args ...any) { t.Fault(checks.Drain, format, args...) }
		}
		say("%s (%s): %s", d.Name, d.Identity(), what)
	}
	if int(h.Spare) < p.WatchSpare {
		t.Watch("%s (%s) has %d%% of its spare blocks left", d.Name, d.Identity(), h.Spare)
	}
	if int(h.Used) > p.WatchUsed {
		t.Watch("%s (%s) has used %d%% of its life", d.Name, d.Identity(), h.Used)
	}
	if p.WatchMediaErrors > 0 && h.MediaErrors >= p.WatchMediaErrors {
		t.Watch("%s (%s) could not give back what was written %d times", d.Name, d.Identity(), h.MediaErrors)
	}
}

func evidence(r Reading) string {
	var lines []string
	for _, d := range r.Disks {
		lines = append(lines, fmt.Sprintf("%s state=%s size=%d ro=%t temperature=%d critical=%d model=%q serial=%q%s", d.Name, d.State, d.Size, d.ReadOnly, d.Temperature, d.Critical, d.Model, d.Serial, d.Health))
	}
	return strings.Join(lines, "\n")
}
