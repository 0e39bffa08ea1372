package checks

import "strconv"

// A GPU is one device as its node knows it.
type GPU struct {
	Node   string `json:"node,omitempty"`
	UUID   string `json:"uuid"`
	Index  int    `json:"index"`            // as the driver counts them now
	PCI    string `json:"pci"`              // domain:bus:device.function, lower case, as 0000:3b:00.0
	Name   string `json:"name"`             // the product name the driver gives, as "NVIDIA H100 80GB HBM3"
	Serial string `json:"serial,omitempty"` // the board's serial; empty on boards that have none
}

// Subject names the GPU in a finding.
func (g GPU) Subject() Subject {
	i := g.Index
	return Subject{Kind: KindGPU, Node: g.Node, GPUUUID: g.UUID, GPUIndex: &i, PCI: g.PCI}
}

func itoa(i int) string { return strconv.Itoa(i) }

// An Availability says how a reading was come by. The zero value is Unread: a reading nobody took proves nothing.
type Availability uint8

const (
	Unread       Availability = iota // not asked, or the call failed: the judge says Unknown
	Read                             // the value is what the device said
	NotSupported                     // the device says it has no such thing: the judge says NotApplicable
)

var availabilityNames = [...]string{"unread", "read", "not_supported"}

func (a Availability) String() string {
	if int(a) < len(availabilityNames) {
		return availabilityNames[a]
	}
	return availabilityNames[Unread]
}

// MarshalText writes the availability's name.
func (a Availability) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads an availability's name; any other text reads as Unread.
func (a *Availability) UnmarshalText(b []byte) error {
	*a = Unread
	for i, n := range availabilityNames {
		if n == string(b) {
			*a = Availability(i)
		}
	}
	return nil
}
