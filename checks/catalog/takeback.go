package catalog

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/xid"
)

// TakeBack lets the driver's last word on a GPU stand. When it takes its verdict back (XID 154, recovery action to none),
// the reset or reboot that it asked for has been done, and the XIDs on that GPU before then are past: they are kept, and no
// fault any more. What a person must do, a part that goes back or a setting, is not the driver's to take back. It is for
// the log of a whole boot; fs is changed.
func TakeBack(fs []checks.Finding) []checks.Finding {
	type part struct{ boot, gpu string }
	at := func(f checks.Finding) part { return part{f.BootID, f.Subject.PCI} }
	last := map[part]time.Time{}
	for _, f := range fs {
		if f.Back && f.Subject.PCI != "" && f.At.After(last[at(f)]) {
			last[at(f)] = f.At
		}
	}
	for i, f := range fs {
		back, ok := last[at(f)]
		if !ok || f.Check != xid.ID || f.Verdict != checks.Fail || f.Action == checks.RMA || f.Action == checks.FixConfig || !f.At.Before(back) {
			continue
		}
		fs[i].Verdict, fs[i].Action, fs[i].Hard = checks.NotApplicable, checks.Watch, false
		fs[i].Reason += "; past, since the driver has taken its verdict back"
	}
	return fs
}
