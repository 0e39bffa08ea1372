package xid

import (
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// exhausted names what the driver writes when a bank has no row left to remap to, or a board no page to retire. NVIDIA, open
// GPU kernel modules, the texts of ECC events; the shorter ones are of older drivers and of people's notes.
var exhausted = [...]string{
	"table full", "table is full", "bank full", "bank is full", "all reserved rows for bank are remapped", "no spare", "no more spare", "out of spare", "no resources",
	"full inforom object", "hw limit reached",
}

// decideRemap judges 63 and 64, where the text decides: no row left means the part goes back, a remap that was recorded
// waits for a reset.
func decideRemap(text string, rule Rule) decision {
	low := strings.ToLower(text)
	for _, word := range exhausted {
		if strings.Contains(low, word) {
			return decision{action: checks.RMA, note: "no spare row is left"}
		}
	}
	if rule.Code == 63 {
		return decision{action: rule.Action(), pending: true, note: "safe to compute on until the reset"}
	}
	if strings.Contains(low, "already pending") {
		return decision{action: rule.Action(), note: "a remap is pending already; the reset makes room for this one"}
	}
	return decision{action: rule.Action()}
}

// driverWords gives the part of a message that is the driver's for sure. A process may have ", " in its name, which its
// user chose: in a line that names one, only what follows the driver's own words for the repair counts. Those do not fit, with what
// they would have to forge, into the 15 bytes of a name.
func driverWords(e Event) string {
	if e.Name == "" {
		return e.Text
	}
	for _, own := range [...]string{"Row Remapper", "etirement", "for repair", "Row Remapping"} {
		i := strings.LastIndex(e.Text, own)
		if own == "etirement" && strings.HasSuffix(e.Text[:max(i, 0)], "no spare for r") { // the reason ends in the same word
			i = strings.LastIndex(e.Text[:i], own)
		}
		if i >= 0 {
			return e.Text[i+len(own):]
		}
	}
	return ""
}

// decideRepair judges 160, a memory channel or L2 slice that is marked for repair. The text says what the repair waits for:
// a GPU reset, as with a row, or a reboot of the node, which nobody does in passing.
func decideRepair(text string, rule Rule) decision {
	if low := strings.ToLower(text); strings.Contains(low, "reboot") && !strings.Contains(low, "reset") {
		return decision{action: checks.Reboot, soft: true, note: "the repair waits for a reboot"}
	}
	return decision{action: rule.Action(), pending: true, note: "safe to compute on until the reset"}
}
