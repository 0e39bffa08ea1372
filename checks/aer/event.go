// Package aer judges PCIe errors that the kernel logs (Advanced Error Reporting): on GPUs, and on the ports above them.
//
// A root port reports what it or a device below it saw, so most lines name a port; which GPU is below takes the PCI tree.
// A fatal error has taken the link down. A corrected one has harmed nothing, and means signal integrity only by its rate.
// After a GPU is lost its path may go on reporting: that is a consequence of the loss.
//
// A port with downstream port containment (DPC) takes its link down itself when it sees an error, and says only so.
//
// Sources: Linux drivers/pci/pcie/dpc.c, and aer.c in its wordings from 3.x to 6.x, PCI Express Base Specification 7.8.4 for the bits.
package aer

// ID is the check's catalog id.
const ID = "aer"

// An Event is one line that the kernel's AER driver wrote.
type Event struct {
	Device   string // the port or device that speaks, as 0000:00:02.0
	Driver   string // its driver, as pcieport or nvidia
	Source   string // the device whose error it is, where the line says; empty when the port does not know
	Severity Severity
	Kind     Kind
	Multiple bool   // more than one error since the port was last asked
	Layer    string // as Data Link Layer
	Bit      string // of Kind Bit: the error's name, as Surprise Down Error
	Raw      string
}

// A Severity says how bad an error is.
type Severity uint8

const (
	Unsaid    Severity = iota
	Corrected          // by the link itself
	NonFatal           // one transaction is lost; the link works
	Fatal              // the link does not work any more
)

func (s Severity) String() string {
	return [...]string{"PCIe error", "corrected PCIe error", "uncorrected, non-fatal PCIe error", "fatal PCIe error"}[s]
}

// A Kind says what of an error a line tells.
type Kind uint8

const (
	Received    Kind = iota // the port has been told of an error; what it was may follow
	Found                   // the error itself
	Bit                     // one name of an error found before
	Below                   // no handler in a device's driver: tells which device is below the port that spoke last
	Unrecovered             // the drivers below could not be brought back after the error found before
)
