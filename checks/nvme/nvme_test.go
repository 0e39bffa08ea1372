package nvme

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func disk(serial string, change ...func(*Disk)) Disk {
	d := Disk{Name: "nvme" + serial, Model: "M", Serial: serial, State: "live", Size: 1e12, Temperature: 40_000, Critical: 85_000}
	for _, c := range change {
		c(&d)
	}
	return d
}

func of(ds ...Disk) Reading { return Reading{Have: checks.Read, Disks: ds} }

func learned(r Reading, ids ...string) Reading { r.Learned = ids; return r }

func TestJudge(t *testing.T) {
	state := func(s string) func(*Disk) { return func(d *Disk) { d.State = s } }
	smart := func(h Health) func(*Disk) {
		h.Have = checks.Read
		return func(d *Disk) { d.Health = h }
	}
	limits := policy.NVMe{FailWarnings: 1 | 4, WatchSpare: 20, WatchUsed: 90, WatchMediaErrors: 7}
	hot := func(milli int) func(*Disk) { return func(d *Disk) { d.Temperature = milli } }
	for _, tt := range []struct {
		name    string
		reading Reading
		policy  policy.NVMe
		want    string // verdict action
		reason  string
	}{
		{"all at work", of(disk("0"), disk("1")), policy.NVMe{}, "pass none", "2 disks at work"},
		{"never read", Reading{}, policy.NVMe{}, "unknown none", "NVMe disks not read"},
		{"none", Reading{Have: checks.NotSupported}, policy.NVMe{}, "not_applicable none", "the node has no NVMe disk"},
		{"none, though the class is there", of(), policy.NVMe{}, "not_applicable none", ""},
		{"none, though policy wants one", Reading{Have: checks.NotSupported}, policy.NVMe{Count: 1}, "fail drain", "0 disks, policy wants 1"},
		{"as many as policy wants", of(disk("0")), policy.NVMe{Count: 1}, "pass none", ""},
		{"one fewer than policy wants", of(disk("0")), policy.NVMe{Count: 2}, "fail drain", "1 disks, policy wants 2"},
		{"one that was there is gone", learned(of(disk("0")), "M 0", "M 1"), policy.NVMe{}, "fail drain", "disk M 1 is gone"},
		{"all are gone, and the class with them", learned(Reading{Have: checks.NotSupported}, "M 0"), policy.NVMe{}, "fail drain", "disk M 0 is gone"},
		{"gone, and policy wants no more", learned(of(disk("0")), "M 0", "M 1"), policy.NVMe{Count: 1}, "pass none", ""},
		{"dead", of(disk("0", state("dead"))), policy.NVMe{}, "fail drain", "nvme0 (M 0) is dead"},
		{"being taken away", of(disk("0", state("deleting (no IO)"))), policy.NVMe{}, "fail drain", "is deleting"},
		{"being reset", of(disk("0", state("resetting"))), policy.NVMe{}, "unknown none", "is resetting"},
		{"a kernel that does not say", of(disk("0", state(""))), policy.NVMe{}, "pass none", ""},
		{"read-only", of(disk("0", func(d *Disk) { d.ReadOnly = true })), policy.NVMe{}, "fail drain", "has turned read-only"},
		{"not read", of(disk("0", func(d *Disk) { d.Err = "EIO" })), policy.NVMe{}, "unknown none", "nvme0 not read: EIO"},
		{"a sound health log", of(disk("0", smart(Health{Spare: 20, Threshold: 10, Used: 90, MediaErrors: 6}))), limits, "pass none", ""},
		{"spare blocks that run out", of(disk("0", smart(Health{Spare: 9, Threshold: 10, Warning: 1}))), limits, "fail drain", "nvme0 (M 0): its spare blocks run out; nvme0 (M 0) has 9% of its spare blocks left"},
		{"a warning that policy watches", of(disk("0", smart(Health{Spare: 100, Warning: 2}))), limits, "pass watch", "its temperature is beyond a limit"},
		{"not reliable", of(disk("0", smart(Health{Spare: 100, Warning: 4}))), limits, "fail drain", "it is not reliable any more"},
		{"a warning of a later specification", of(disk("0", smart(Health{Spare: 100, Warning: 1 << 7}))), limits, "pass watch", "it warns with bit 7"},
		{"spare blocks become few", of(disk("0", smart(Health{Spare: 19}))), limits, "pass watch", "has 19% of its spare blocks left"},
		{"its life is nearly over", of(disk("0", smart(Health{Spare: 100, Used: 91}))), limits, "pass watch", "has used 91% of its life"},
		{"media errors", of(disk("0", smart(Health{Spare: 100, MediaErrors: 7}))), limits, "pass watch", "could not give back what was written 7 times"},
		{"media errors that policy does not look at", of(disk("0", smart(Health{Spare: 100, MediaErrors: 1 << 40}))), policy.NVMe{WatchUsed: 100}, "pass none", ""},
		{"one media error, and policy looks at each", of(disk("0", smart(Health{Spare: 100, MediaErrors: 1}))), policy.NVMe{WatchUsed: 100, WatchMediaErrors: 1}, "pass watch", ""},
		{"no health log", of(disk("0", func(d *Disk) { d.Health = Health{Have: checks.NotSupported, Warning: 255} })), limits, "pass none", ""},
		{"a health log that may not be read", of(disk("0", func(d *Disk) { d.Health = Health{Err: "EPERM", Refused: true} })), limits, "pass watch", "nvme0: its health log may not be read from here: EPERM"},
		{"a health log that was not read", of(disk("0", func(d *Disk) { d.Health = Health{Err: "EIO"} })), limits, "unknown none", "nvme0: its health log was not read: EIO"},
		{"almost at its limit", of(disk("0", hot(79_999))), policy.NVMe{Margin: 5}, "pass none", ""},
		{"near its limit", of(disk("0", hot(80_000))), policy.NVMe{Margin: 5}, "pass watch", "nvme0 (M 0) is at 80 °C, its limit is 85"},
		{"a drive without a limit", of(disk("0", func(d *Disk) { d.Critical = 0 })), policy.NVMe{Margin: 5}, "pass none", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(tt.reading, tt.policy)
			if got := f.Verdict.String() + " " + f.Action.String(); got != tt.want || !strings.Contains(f.Reason, tt.reason) || f.Hard || f.Check != ID {
				t.Errorf("got %s, hard %t, %q; want %s, %q", got, f.Hard, f.Reason, tt.want, tt.reason)
			}
		})
	}
}

func TestTrack(t *testing.T) {
	var ids []string
	Track(&ids, of(disk("0"), disk("1"), disk("2", func(d *Disk) { d.Err = "EIO" }), Disk{Name: "nvme3"}))
	r := Track(&ids, of(disk("1")))
	if strings.Join(r.Learned, ",") != "M 0,M 1" || len(ids) != 2 {
		t.Errorf("learned %q", r.Learned)
	}
	if f := Judge(r, policy.NVMe{}); f.Reason != "disk M 0 is gone" {
		t.Errorf("one is gone: %+v", f)
	}
	r = Track(&ids, of(disk("1"), disk("7")))
	if f := Judge(r, policy.NVMe{}); f.Verdict != checks.Pass || strings.Join(ids, ",") != "M 7,M 1" {
		t.Errorf("changed for another: %+v, learned %q", f, ids)
	}
	if r = Track(&ids, of(disk("1"), disk("7"), disk("8"))); len(r.Learned) != 3 {
		t.Errorf("one more: learned %q", r.Learned)
	}
}

func TestFixtures(t *testing.T) {
	judge := func(r Reading) []checks.Finding { return []checks.Finding{Judge(r, policy.NVMe{})} }
	checktest.Three(t, ID, judge(of(disk("0"))), judge(of(disk("0", func(d *Disk) { d.State = "dead" }))), judge(Reading{Err: "EIO"}))
}
