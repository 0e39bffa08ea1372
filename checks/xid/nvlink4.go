package xid

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// XID 74 prints seven registers; the first, third, fourth and fifth say what happened on the link, on Hopper. The masks
// are NVIDIA's workflow for NVLink errors, as quoted in NVIDIA/NVSentinel 364.
const (
	linkHarmless = 1<<0 | 1<<23 | 1<<30

	link1Secondary  = 1<<1 | 1<<20
	link1ECC        = 1<<4 | 1<<5
	link1Mechanical = 1<<8 | 1<<9 | 1<<12 | 1<<16 | 1<<17 | 1<<24 | 1<<28
	link1Signal     = 1<<21 | 1<<22
	link1Repeat     = 1<<27 | 1<<29

	link3ECC        = 1<<0 | 1<<1 | 1<<2 | 1<<6
	link3Unexpected = 1 << 13
	link3Repeat     = 1<<16 | 1<<17 | 1<<18 | 1<<19

	link4Secondary = 1<<16 | 1<<17
	link4Fabric    = 1 << 18 // secondary as well, yet the fabric must be reset

	link5ECC       = 1<<18 | 1<<19 | 1<<21 | 1<<22 | 1<<24 | 1<<25 | 1<<27 | 1<<28
	link5Threshold = 1<<20 | 1<<23 | 1<<26 | 1<<29 // many corrected errors, none uncorrected
)

// decideNVLink4 judges 74 by its registers. Bits that follow from another fault, and those that speak of corrected errors,
// take no node out; any other bit names a link to look at. Which end is at fault takes more than this line.
func decideNVLink4(text string, rule Rule) decision {
	r, ok := registers(text)
	if !ok || len(r) != 7 || r == [7]uint64{} {
		return decision{action: rule.Action()}
	}
	secondary := r[0]&link1Secondary | (r[3] & (link4Secondary | link4Fabric))
	threshold := r[4] & link5Threshold
	r[0] &^= linkHarmless | link1Secondary
	r[3] &^= link4Secondary
	r[4] &^= link5Threshold
	d := decision{action: rule.Action()}
	switch {
	case r[0]&link1Mechanical != 0:
		d.note = "check the link's mechanical connections"
	case r[0]&link1ECC != 0 || r[2]&link3ECC != 0 || r[4]&link5ECC != 0:
		d.note = "ECC or parity of the link"
	case r[0]&link1Signal != 0:
		d.note = "marginal signal: check the link's connections"
	case r[0]&link1Repeat != 0 || r[2]&link3Repeat != 0:
		d.note = "run field diagnostics if it repeats"
	case r[2]&link3Unexpected != 0:
		d.note = "a bit not expected in production"
	case r[3]&link4Fabric != 0:
		d.note, d.peer = "follows from another fault; the fabric must be reset", true
	case r != [7]uint64{}:
		d.note = "bits that the workflow does not name"
	case secondary != 0:
		return decision{action: checks.Watch, peer: true, note: "only bits that follow from another fault are set"}
	case threshold != 0:
		return decision{action: checks.Watch, note: "many corrected errors on the link, none uncorrected"}
	default:
		return decision{action: checks.None, note: "only bits that may be ignored are set"}
	}
	return d
}

// registers reads "(0x100000, 0x0, …)": seven of them, or none. They come last: before them may stand the process's name.
func registers(text string) (regs [7]uint64, ok bool) {
	i := strings.LastIndex(text, "(0x")
	if i < 0 {
		return regs, false
	}
	v, _, ok := strings.Cut(text[i+len("(0x"):], ")")
	if !ok {
		return regs, false
	}
	n := 0
	for s := range strings.SplitSeq("0x"+v, ",") {
		if n == len(regs) {
			return regs, false
		}
		if _, err := fmt.Sscanf(strings.TrimSpace(s), "0x%x", &regs[n]); err != nil {
			return regs, false
		}
		n++
	}
	return regs, n == len(regs)
}
