// Package nic judges what the drivers of network cards write to the kernel log: mlx5, links that go up and down in the words
// of most drivers, and the kernel's own watchdog of transmit queues.
//
// A card whose firmware answers no more stays so until the node reboots, and has been seen to for days while all else
// called the node well (NVIDIA/NVSentinel 1334). Most other lines are no fault: a port without a cable, a card that may not
// draw its full power, a counter that could not be read (leptonai/gpud 1164). Whether a link is up its state says.
//
// Sources: Linux drivers/net/ethernet/mellanox/mlx5/core (cmd.c, health.c, events.c), net/sched/sch_generic.c.
package nic

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// ID is the check's catalog id.
const ID = "nic"

// An Event is one line.
type Event struct {
	Kind   Kind
	PCI    string // of the card's function, as 0000:4b:00.0; empty when the line does not say
	Netdev string // the network interface, where the line names one
	Detail string // what exactly, in the driver's words
	Raw    string
}

// A Kind says what a line tells.
type Kind uint8

const (
	CommandTimeout Kind = iota + 1 // the firmware did not answer a command
	Compromised                    // the firmware's health counter stands still
	Hardware                       // the firmware reports a hardware error it cannot recover from
	ModuleError                    // the cable or its module is at fault, or hot
	Unplugged
	LinkDown
	LinkUp
	TxTimeout // the card did not send
	SlotPower // the slot gives less power than the card could use
	Access    // a register could not be read
	Died      // the driver found the card's firmware dead
	Lost      // the driver could not bring the card back
	Hot       // a sensor of the card's is beyond its threshold
)

var kinds = [...]struct {
	action checks.Action
	text   string
}{
	CommandTimeout: {checks.Reboot, "the card's firmware answers no more"},
	Compromised:    {checks.Reboot, "the card's firmware stands still"},
	Hardware:       {checks.Reboot, "the card reports a hardware error that it cannot recover from"},
	ModuleError:    {checks.Watch, "cable or module at fault"},
	Unplugged:      {checks.None, "no cable"},
	LinkDown:       {checks.Watch, "link went down"},
	LinkUp:         {checks.None, "link came up"},
	TxTimeout:      {checks.Watch, "the card did not send in time"},
	SlotPower:      {checks.None, "the slot gives less power than the card could use; usual on many boards"},
	Access:         {checks.None, "a register could not be read; comes from reading counters"},
	Died:           {checks.Reboot, "the driver found the card dead"},
	Lost:           {checks.Reboot, "the driver could not bring the card back"},
	Hot:            {checks.Watch, "the card is hot"},
}

// sentences are looked for in this order; the first that a line holds decides.
var sentences = [...]struct {
	words string
	kind  Kind
}{
	{" timeout. Will cause a leak of a command resource", CommandTimeout},
	{"health compromised", Compromised},
	{": Fatal error ", Died}, // "Fatal error 3 detected", the number being which of the driver's sensors
	{"health recovery flow aborted", Lost},
	{"health recovery failed", Lost},
	{"unrecoverable hardware error", Hardware},
	{"Port module event[error]: ", ModuleError},
	{"Cable unplugged", Unplugged},
	{"High temperature on sensor", Hot}, // "High temperature on sensors with bit set 0 1"
	{"transmit queue ", TxTimeout},
	{"TX timeout detected", TxTimeout},
	{"etected insufficient power on the PCIe slot", SlotPower},
	{"ACCESS_REG", Access},
	{"Link down", LinkDown},
	{"Link up", LinkUp},
	{"NIC Link is Down", LinkDown},
	{"NIC Link is Up", LinkUp},
}

// Parse reads one line of the kernel log, with any prefix; false for one that says none of this. It never panics, and
// allocates nothing for a line it refuses.
func Parse(line string) (Event, bool) {
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i] // what follows is the device dictionary of a kmsg record
	}
	mlx := strings.Index(line, "mlx5_core ")
	dog, link := strings.Index(line, "NETDEV WATCHDOG: "), strings.Index(line, " NIC Link is ")
	said := line
	switch {
	case mlx >= 0:
		said = line[mlx+len("mlx5_core "):]
	case dog >= 0:
		said = line[dog:]
	case link >= 0:
		said = speaker(strings.TrimSuffix(line[:link], ":")) + ":" + line[link:]
	default:
		return Event{}, false
	}
	for _, s := range sentences {
		i := strings.Index(said, s.words)
		if i < 0 || s.kind == Died && !numbered(said[i+len(s.words):]) {
			continue
		}
		e := Event{Kind: s.kind, Raw: checks.OneLine(line), Detail: checks.OneLine(said)}
		if mlx >= 0 || dog < 0 {
			e.card(said)
		} else {
			e.watched(said)
		}
		return e, true
	}
	return Event{}, false
}

// numbered reports whether s goes on as "3 detected".
func numbered(s string) bool {
	number, rest, _ := strings.Cut(s, " ")
	return number != "" && strings.Trim(number, "0123456789") == "" && strings.HasPrefix(rest, "detected")
}

// speaker gives of "… i40e 0000:3b:00.0 enp59s0f0" the card and its interface, and of "… e1000e: eth0" and "igb 0000:01:00.0
// eno1: igb: eno1" the interface.
func speaker(before string) string {
	i := strings.LastIndexAny(before, " ;") // a raw record's head ends in a semicolon
	name := before[i+1:]
	if i > 0 && before[i] == ' ' {
		pci := before[strings.LastIndexAny(before[:i], " ;")+1 : i]
		if checks.PCIAddress(pci) != "" && strings.Count(pci, ":") == 2 {
			return pci + " " + name
		}
	}
	return name
}

// card reads "0000:4b:00.0 enp75s0np0: Link down": which card, and its interface where it has one.
func (e *Event) card(s string) {
	pci, rest, _ := strings.Cut(s, " ")
	if strings.Count(pci, ":") >= 2 {
		e.PCI = checks.PCIAddress(strings.TrimSuffix(pci, ":"))
	}
	if e.PCI == "" {
		if name, ok := strings.CutSuffix(pci, ":"); ok && strings.HasPrefix(rest, "NIC Link is ") {
			e.Netdev, e.Detail = checks.OneLine(name), checks.OneLine(rest)
		}
		return
	}
	e.Detail = checks.OneLine(rest)
	if !strings.HasSuffix(pci, ":") {
		if name, after, ok := strings.Cut(rest, ": "); ok && !strings.ContainsAny(name, " :") {
			e.Netdev, e.Detail = checks.OneLine(name), checks.OneLine(after)
		}
	}
}

// watched reads "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out".
func (e *Event) watched(s string) {
	_, s, _ = strings.Cut(s, ": ")
	if name, after, ok := strings.Cut(s, " ("); ok && !strings.ContainsAny(name, " :") {
		e.Netdev = checks.OneLine(name)
		_, after, _ = strings.Cut(after, ": ")
		e.Detail = checks.OneLine(after)
	}
}

// Judge turns a line into a finding without time, node and boot id. A wedged card is a soft Fail: the GPUs may be well.
func Judge(e Event) checks.Finding {
	f := checks.Finding{Check: ID, Subject: checks.Subject{Kind: checks.KindPort, PCI: e.PCI}, Evidence: e.Raw}
	switch {
	case e.PCI == "" && e.Netdev != "":
		f.Subject.Port = e.Netdev
	case e.PCI == "":
		f.Subject.Kind = checks.KindNode
	}
	if int(e.Kind) >= len(kinds) || e.Kind == 0 {
		f.Verdict, f.Action, f.Reason = checks.NotApplicable, checks.Watch, e.Detail
		return f
	}
	k := kinds[e.Kind]
	f.Action, f.Verdict = k.action, checks.NotApplicable
	if !k.action.Harmless() {
		f.Verdict = checks.Fail
	}
	detail := e.Detail
	if len(detail) > 120 {
		detail = strings.ToValidUTF8(detail[:120], "")
	}
	f.Reason = fmt.Sprintf("%s: %s", k.text, detail)
	return f
}
