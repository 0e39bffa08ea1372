package slurm

import (
	"slices"
	"strings"
)

// Flags of a node's state, as scontrol writes them. Others are kept as they come.
const (
	FlagDrain           = "DRAIN"
	FlagFail            = "FAIL"
	FlagCompleting      = "COMPLETING"
	FlagNotResponding   = "NOT_RESPONDING"
	FlagRebootRequested = "REBOOT_REQUESTED"
	FlagRebootIssued    = "REBOOT_ISSUED"
	FlagInvalidReg      = "INVALID_REG"
	FlagPoweringUp      = "POWERING_UP"
	FlagPoweringDown    = "POWERING_DOWN"
	FlagPoweredDown     = "POWERED_DOWN"
	FlagPowerDown       = "POWER_DOWN"
	FlagMaintenance     = "MAINTENANCE"
	FlagPlanned         = "PLANNED"
)

// suffixes are what sinfo and older scontrol put behind a state word. Source: sinfo(1), NODE STATE CODES.
var suffixes = map[byte]string{
	'*': FlagNotResponding, '~': FlagPoweredDown, '#': FlagPoweringUp, '!': FlagPowerDown, '%': FlagPoweringDown,
	'$': FlagMaintenance, '@': FlagRebootRequested, '^': FlagRebootIssued, '-': FlagPlanned,
}

// words are the state words that stand for a base state, a flag, or both. Source: slurm_protocol_defs.c node_state_string
// and node_state_string_compact, 20.11 to 26.11.
var words = map[string]struct{ base, flag string }{
	"IDLE": {"IDLE", ""}, "ALLOCATED": {"ALLOCATED", ""}, "ALLOC": {"ALLOCATED", ""}, "MIXED": {"MIXED", ""}, "MIX": {"MIXED", ""},
	"DOWN": {"DOWN", ""}, "ERROR": {"ERROR", ""}, "FUTURE": {"FUTURE", ""}, "FUTR": {"FUTURE", ""}, "UNKNOWN": {"UNKNOWN", ""}, "UNK": {"UNKNOWN", ""},
	"DRAINED": {"IDLE", FlagDrain}, "DRAINING": {"ALLOCATED", FlagDrain}, "DRNG": {"ALLOCATED", FlagDrain}, "DRAIN": {"", FlagDrain},
	"FAILING": {"ALLOCATED", FlagFail}, "FAILG": {"ALLOCATED", FlagFail}, "FAIL": {"", FlagFail},
	"COMPLETING": {"", FlagCompleting}, "COMP": {"", FlagCompleting},
	"NO_RESPOND": {"", FlagNotResponding}, "NOT_RESPONDING": {"", FlagNotResponding},
	"MAINT": {"", FlagMaintenance}, "RESV": {"", "RESERVED"}, "PLND": {"", FlagPlanned}, "BLOCK": {"", "BLOCKED"},
	"REBOOT": {"", FlagRebootRequested}, "BOOT": {"", FlagRebootIssued},
	"INVAL": {"", FlagInvalidReg}, "INVALID": {"", FlagInvalidReg},
	"POW_DN": {"", FlagPowerDown}, "POW_UP": {"", FlagPoweringUp}, "POWERED_DOWN": {"", FlagPoweredDown},
}

// ParseState reads a node state in any form that Slurm prints: "IDLE+DRAIN", "DOWN*+DRAIN", "drng@", "inval". base is
// empty when only a flag was named. Flags come in the order written, each once; unknown words are kept as flags.
func ParseState(s string) (base string, flags []string) {
	add := func(f string) {
		if f != "" && !slices.Contains(flags, f) {
			flags = append(flags, f)
		}
	}
	for word := range strings.SplitSeq(strings.ToUpper(s), "+") {
		var marks []string
		for word != "" {
			m, ok := suffixes[word[len(word)-1]]
			if !ok {
				break
			}
			marks = append(marks, m)
			word = word[:len(word)-1]
		}
		w, ok := words[word]
		if !ok {
			w.flag = word
		}
		// sinfo's "reboot^" is issued, not merely requested.
		if word == "REBOOT" && slices.Contains(marks, FlagRebootIssued) {
			w.flag = ""
		}
		if base == "" {
			base = w.base
		}
		add(w.flag)
		for _, m := range slices.Backward(marks) {
			add(m)
		}
	}
	return base, flags
}
