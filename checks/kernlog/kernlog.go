// Package kernlog tells what a line of the kernel log is about, and has the check that knows read it.
//
// All lines pass here and nearly all say nothing of ours, so the line is looked at once: a machine made of the words that
// any of the checks waits for goes over it byte by byte and says which of them it met. Where the words stand, and so the
// prefix that dmesg, syslog, journald or kmsg puts before the message, does not matter.
package kernlog

import (
	"iter"
	"strings"

	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/hostlog"
	"github.com/assay-gpu/assay/checks/nic"
	"github.com/assay-gpu/assay/checks/nvrm"
	"github.com/assay-gpu/assay/checks/xid"
)

// An Event is what one line says: an xid.Event, aer.Event, nvrm.Event, nic.Event or hostlog.Event.
type Event any

// Topics, a bit each.
const (
	ofXID = 1 << iota
	ofAER
	ofNVRM
	ofNIC
	ofHost
	ofBoot
)

// words are what the checks wait for. A check reads no line that holds none of its words, so each sentence that it knows
// must hold one: a test sees to that.
var words = [...]word{
	{"Xid (", ofXID}, // SXid too
	{"fallen off the bus", ofXID},
	{"detected NVSwitch ", ofXID},

	{"AER: ", ofAER}, {"PCIe Bus Error: ", ofAER}, {"no AER-aware driver", ofAER}, {":    [", ofAER}, {"aer_status: ", ofAER}, {"DPC: containment event", ofAER},

	{"NVRM: ", ofNVRM}, {"all links are inActive", ofNVRM}, {"nvidia-peermem ", ofNVRM}, {"nvidia: probe of ", ofNVRM}, {"probe with driver nvidia", ofNVRM},

	{"mlx5_core ", ofNIC}, {"NETDEV WATCHDOG: ", ofNIC}, {" NIC Link is ", ofNIC},

	{"blocked for more than ", ofHost}, {"soft lockup - CPU#", ofHost}, {"ard LOCKUP", ofHost}, {"detected stall", ofHost},
	{"ut of memory: Kill", ofHost}, {"Memory failure: 0x", ofHost}, {"[Hardware Error]", ofHost}, {"mce: ", ofHost}, {"EDAC MC", ofHost},
	{"Kernel panic - ", ofHost}, {"nvme nvme", ofHost}, {"Remounting filesystem read-only", ofHost}, {"forced readonly", ofHost}, {"hutting down filesystem", ofHost},
	{"ilesystem has been shut down", ofHost},

	{bootWord, ofBoot},
}

// bootWord stands in the kernel's first line, which begins a boot where a text holds several.
const bootWord = "Linux version "

// Holds reports whether a line may say something of ours, or that another boot begins. It allocates nothing.
func Holds(line []byte) bool { return topics(machine, line) != 0 }

// Parse reads one line, or one kmsg record, of the kernel log. It reports false for a line that says nothing of ours. It
// never panics, whatever the bytes, and allocates nothing for a line that holds none of the words.
func Parse(line string) (Event, bool) {
	line, _, _ = strings.Cut(line, "\n")
	met := topics(machine, line) &^ ofBoot
	if met == 0 {
		return nil, false
	}
	if e, ok := parse(line, met); ok && !quotes(line) {
		return e, true
	}
	return nil, false
}

// Events gives all that one message, or one kmsg record, says: mostly nothing, else one event, and more where it has several
// lines, as journald keeps them, and where lines have run together, as on a console, or after the end of one was lost.
func Events(message string) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		asked := false
		say := func(e Event) bool {
			if !asked && quotes(message) {
				return false
			}
			asked = true
			return yield(e)
		}
		for rest, more := message, true; more && !isRow(rest); {
			var line string
			if line, rest, more = strings.Cut(rest, "\n"); !ofLine(line, say) {
				return
			}
		}
	}
}

// Message is Events for a message that is known to be whole, with nothing before it: a record of /dev/kmsg, an entry of the
// journal's. There what the kernel says begins the message, and what a line further down says is only taken where the first
// says something of ours: a user may put the end of a line into the name of a file, and the driver's words after it. In
// the text that dmesg and syslog print, nobody can tell such a line from the kernel's own.
func Message(message string) iter.Seq[Event] {
	first, rest, several := strings.Cut(message, "\n")
	if i := strings.Index(first, escapedEnd); i >= 0 {
		first, several = first[:i], true
	} else if several && isRow(rest) {
		several = false
	}
	met := topics(machine, first) &^ ofBoot
	if several && met == 0 || met&ofXID != 0 && !begins(first) {
		return func(func(Event) bool) {}
	}
	return Events(message)
}

// escapedEnd is the end of a line within a record of /dev/kmsg: Linux kernel/printk/printk.c, msg_print_ext_body.
const escapedEnd = `\x0a`

// speakers are what a message that tells of an XID begins with: the driver's, the switch driver's, the fabric manager's, with the
// time before it, and the driver model's.
var speakers = [...]string{"NVRM: ", "nvidia", "SXid (", "Xid (", "[", "detected NVSwitch "}

func begins(message string) bool {
	for _, s := range speakers {
		if strings.HasPrefix(message, s) {
			return true
		}
	}
	return false
}

// isRow reports whether a text goes on with a row of a kmsg record's device dictionary, " SUBSYSTEM=pci", which ends the message.
func isRow(s string) bool {
	if s == "" || s[0] != ' ' {
		return false
	}
	name, _, ok := strings.Cut(s[1:], "=")
	return ok && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
}

// ofLine says what one line says, as long as that is wanted.
func ofLine(line string, say func(Event) bool) bool {
	for line != "" {
		met := topics(machine, line) &^ ofBoot
		if met == 0 {
			break
		}
		first, rest := line, ""
		if met&ofXID != 0 {
			if i := xid.Cut(line); i >= 0 {
				first, rest = line[:i], line[i:]
			}
		}
		if e, ok := parse(first, met); ok && !say(e) {
			return false
		}
		line = rest
	}
	return true
}

// parse asks the checks in the order of what they know: a number before a sentence, the device that speaks before the host.
// An XID without its number comes last: its words may stand in another's line.
func parse(line string, met uint8) (Event, bool) {
	if met&ofXID != 0 {
		if e, ok := xid.Parse(line); ok {
			return e, true
		}
	}
	if met&ofAER != 0 {
		if e, ok := aer.Parse(line); ok {
			return e, true
		}
	}
	if met&ofNVRM != 0 {
		if e, ok := nvrm.Parse(line); ok {
			return e, true
		}
	}
	if met&ofNIC != 0 {
		if e, ok := nic.Parse(line); ok {
			return e, true
		}
	}
	if met&ofHost != 0 {
		if e, ok := hostlog.Parse(line); ok {
			return e, true
		}
	}
	if met&ofXID != 0 {
		if e, ok := xid.ParseDamaged(line); ok {
			return e, true
		}
	}
	return nil, false
}
