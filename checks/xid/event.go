// Package xid judges what the NVIDIA drivers write to the kernel log: XIDs of GPUs and SXids of NVSwitches.
//
// Parse turns a log line into an Event, Judge an Event into a finding. An event explains; it does not prove health: no
// finding of this package is ever a reason to certify, and none that asks for nothing is a Pass. The driver's own
// verdict (XID 154) outranks the message's text, which outranks the number. A code that the table does not hold is
// watched and changes no state.
//
// Sources: open-gpu-kernel-modules kernel_rc.c for the form of a line; xid.csv and sxid.txt beside this file for codes.
package xid

// ID and SwitchID are the checks' catalog ids.
const (
	ID       = "xid"  // a GPU's driver
	SwitchID = "sxid" // an NVSwitch's driver
)

// FellOffBus is the XID of a GPU that the driver reaches no more.
const FellOffBus = 79

// An Event is one line of the kernel log that names a fault of a GPU or an NVSwitch.
type Event struct {
	Switch bool   // an SXid of an NVSwitch; otherwise an XID of a GPU
	Code   int    // the XID or SXid; 0 when the line is too damaged to tell
	PCI    string // domain:bus:device.function, lower case, as 0000:3b:00.0; empty when the line does not say
	MIG    string // GPU instance, as 3, or GPU and compute instance, as 3/0; empty for a whole GPU
	Link   int    // NVLink number; -1 when the line does not say
	Port   string // switch port, where the fabric manager names it

	PID   int    // of the process that held the channel; 0 when the driver did not know
	Name  string // of that process, as the kernel cut it to 15 bytes; chosen by its user
	Text  string // the message after the number, pid and name
	Cause int    // the XID that this one names as its cause; 0 for none

	Fatal    Severity // what the message itself says
	NVLink   NVLink   // what 144 to 150 decode to; the zero value for other codes
	Injected bool     // a test made it, not the hardware
	Detail   bool     // further data on the SXid before it, no event of its own
	Prose    bool     // a sentence without a number, such as "GPU has fallen off the bus"
	NVML     bool     // no line but NVML's event, which has the number alone

	Raw string // the line, cut to what a finding keeps
}

// A Severity is a message's own word for how bad it is. It is often absent.
type Severity uint8

const (
	Unsaid Severity = iota
	NonFatal
	Fatal
)

// Instance numbers of this value mean none (NVIDIA k8s-test-infra 735).
const noInstance = 1<<32 - 1

// maxRaw bounds the evidence kept of one line, in bytes. The kernel's own limit for a record is 1 KiB.
const maxRaw = 1024
