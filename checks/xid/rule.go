package xid

import "github.com/assay-gpu/assay/checks"

//go:generate go run ./gen

// A Rule is what the table says of one XID.
type Rule struct {
	Code     int
	Name     string // in a few words
	Severity string // unused, info, watch, app, software, hw, gpu-degraded, gpu-fatal, node-fatal, decode, conditional, verdict, unknown
	Word     string // the action as xid.csv words it
	Notes    string // what NVIDIA, gpud and DCGM do with it
}

// Lookup gives the rule of a code; false for a code that the table does not hold.
func Lookup(code int) (Rule, bool) {
	if code <= 0 || code >= len(rules) || rules[code].Code == 0 {
		return Rule{}, false
	}
	return rules[code], true
}

// Codes gives every code in the table, rising.
func Codes() []int {
	out := make([]int, 0, len(rules))
	for _, r := range rules {
		if r.Code != 0 {
			out = append(out, r.Code)
		}
	}
	return out
}

// actions decides what each action word of xid.csv asks for. What the message says, and the driver's own verdict, outrank
// it: see Judge. Where the sources disagree, the milder action stands if the driver states its own verdict (XID 154) for
// the fault anyway, since that one decides.
var actions = map[string]checks.Action{
	"ignore":              checks.None,
	"ignore-if-secondary": checks.None, // 45: a teardown is never a fault of its own
	"clears-163":          checks.None,

	"restart-app":                      checks.RestartApp,
	"restart-app; reset-gpu-when-idle": checks.RestartApp, // 94: contained; a remap that follows says so itself

	"contact-support-if-seen":                checks.Watch, // unused since Ampere: seeing one is news, not a fault
	"contact-support":                        checks.Watch, // NVIDIA publishes no cause; 154 decides
	"watch-sbe-rate":                         checks.Watch, // 92: one event says nothing, only their rate does
	"reset-gpu-at-convenience":               checks.Watch, // 121: corrected, no effect on work
	"reset-gpu-if-uvm-or-vgpu":               checks.Watch, // 159: the driver sets 154 where it matters
	"keep-running; contact-support":          checks.Watch, // 157
	"check-thermals; reload-driver-or-reset": checks.Watch, // 163: power smoothing is off; results stay right
	"plan-replacement-if-feature-needed":     checks.Watch,
	"replace-if-feature-needed":              checks.Watch,
	"cc-mode-only":                           checks.Watch,
	"decode-subcode":                         checks.Watch, // 144 to 150: the message's own severity raises it, see judgeNVLink5

	"reset-gpu": checks.ResetGPU,
	"reset-gpu (with 63/64: drain-and-reset)": checks.ResetGPU, // 48
	"reset-gpu-at-drain":                      checks.ResetGPU, // 63, 160: safe to compute on until then
	"reset-gpu then rma-review":               checks.ResetGPU, // 64: the message can raise it to rma
	"reset-gpu-unless-planned":                checks.ResetGPU, // 155: nothing in the log says that it was planned
	"handle-with-48":                          checks.ResetGPU, // 171: the location of a 48, which may have been cut off
	"handle-with-48; check-sram-threshold":    checks.ResetGPU, // 172

	"reboot-node":        checks.Reboot,
	"restart-vm-or-node": checks.Reboot,

	"update-driver-or-firmware": checks.FixConfig,
	"enable-ecc-or-reboot":      checks.FixConfig, // 168: seen with ECC off only

	"check-power-cabling": checks.Drain,
	"decode-registers":    checks.Drain, // 74: a link failed; which end is at fault takes more than this line

	"follow-154-text": checks.Watch, // what it asks for stands in the message; one that cannot be read asks for nothing
}

// pendingOnly says which codes record a repair that waits for a reset: a Pass with an action, not a fault.
func pendingOnly(code int) bool { return code == 63 || code == 160 }

// Action gives what the table alone asks for on a code: Watch for one it does not hold.
func (r Rule) Action() checks.Action {
	if a, ok := actions[r.Word]; ok {
		return a
	}
	return checks.Watch
}

// Severity of an SXid by the table: "fatal", "warning", or empty for a code that it does not hold.
func switchSeverity(code int) string {
	within := func(spans [][2]int) bool {
		for _, s := range spans {
			if code >= s[0] && code <= s[1] {
				return true
			}
		}
		return false
	}
	switch {
	case within(fatalSwitch[:]):
		return "fatal"
	case within(warningSwitch[:]):
		return "warning"
	}
	return ""
}
