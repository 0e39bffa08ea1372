package clocks

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the check's catalog id.
const ID = "clocks"

// judged are the reasons that may be faults, the severest first, with what to call them.
var judged = []struct {
	name Name
	bit  Reasons
	text string
	hw   bool
}{
	{NameHWThermal, HWThermal, "hardware thermal slowdown", true},
	{NamePowerBrake, PowerBrake, "power brake", true},
	{NameHWSlowdown, HWSlowdown, "hardware slowdown", true},
	{NameSWThermal, SWThermal, "software thermal slowdown", false},
}

// Judge turns a reading into a finding. It does no I/O. A slowdown is a soft fault when it held for more than the policy's
// share of the time since the earlier reading. Where the driver does not count the time, it must be seen at both readings.
// A hardware thermal slowdown seen at any moment is one at once: the GPU has passed the limit that protects it.
func Judge(gpu checks.GPU, r Reading, p policy.Clocks) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	switch r.Have {
	case checks.NotSupported:
		f.Verdict, f.Reason = checks.NotApplicable, "this GPU gives no clock event reasons"
		return f
	case checks.Read:
	default:
		f.Reason = "clock event reasons not read"
		if r.Err != "" {
			f.Reason += ": " + r.Err
		}
		return f
	}
	f.Evidence = evidence(r)
	var faults, watch []string
	for _, j := range judged {
		if j.name == NameHWSlowdown && r.Reasons&(HWThermal|PowerBrake) != 0 {
			continue // it is set with them, and says no more
		}
		now := r.Reasons&j.bit != 0
		share, counted := r.share(j.name)
		most := p.MaxHWShare
		if !j.hw {
			most = p.MaxSWShare
		}
		switch {
		case counted && share > most:
			faults = append(faults, fmt.Sprintf("%s for %.0f %% of the last %s, more than %.0f %%", j.text, 100*share, r.Over.Round(time.Second), 100*most))
		case now && j.name == NameHWThermal:
			faults = append(faults, j.text+" now")
		case now && !counted && r.Before != nil && *r.Before&j.bit != 0:
			faults = append(faults, fmt.Sprintf("%s now and %s ago", j.text, r.Over.Round(time.Second)))
		case now:
			watch = append(watch, j.text+" now")
		case counted && share > 0:
			watch = append(watch, fmt.Sprintf("%s for %.2g %% of the last %s", j.text, 100*share, r.Over.Round(time.Second)))
		}
	}
	switch {
	case len(faults) > 0:
		f.Verdict, f.Action, f.Reason = checks.Fail, checks.Drain, strings.Join(faults, "; ")
	case len(watch) > 0:
		f.Verdict, f.Action, f.Reason = checks.Pass, checks.Watch, strings.Join(watch, "; ")
	default:
		f.Verdict, f.Reason = checks.Pass, "no slowdown by heat or power brake"
	}
	return f
}

// share is the part of the time since the earlier reading that a reason held; counted is false when that is not known.
func (r Reading) share(n Name) (share float64, counted bool) {
	c, ok := r.Held[n]
	if !ok || r.Over <= 0 {
		return 0, false
	}
	by, why := c.Rise()
	return counter.Share(by, r.Over), why == ""
}

// names are the words for every bit, in its order.
var names = []string{"idle", "application_clocks", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "power_brake",
	"display_clocks", "board_limit", "reliability"}

// String lists the reasons: none, or as idle,sw_power_cap. A bit without a name is shown by its number.
func (r Reasons) String() string {
	var out []string
	for bit := range 64 {
		if r>>bit&1 == 0 {
			continue
		}
		if bit < len(names) {
			out = append(out, names[bit])
		} else {
			out = append(out, fmt.Sprintf("bit%d", bit))
		}
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ",")
}

func evidence(r Reading) string {
	var b strings.Builder
	fmt.Fprintf(&b, "reasons=%s over=%s", r.Reasons, r.Over.Round(time.Second))
	for _, j := range judged {
		switch c, ok := r.Held[j.name]; {
		case ok && c.Have == checks.Read:
			fmt.Fprintf(&b, " %s=%s", j.name, time.Duration(c.Now))
		case ok:
			fmt.Fprintf(&b, " %s=%s", j.name, c.Have)
		}
	}
	return b.String()
}
