package policy

// NVMe holds what is expected of a node's NVMe disks.
type NVMe struct {
	Count  int `json:"count" yaml:"count"`   // disks; 0: those this node has shown
	Margin int `json:"margin" yaml:"margin"` // a disk within this many °C of its own critical temperature is watched
}

func defaultNVMe() NVMe { return NVMe{Count: 0, Margin: 5} }

func (v *validator) nvme(n NVMe) {
	atLeast(v, "nvme.count", n.Count, 0)
	if n.Count > 256 {
		v.add("nvme.count", "%d: no node has more than 256 disks", n.Count)
	}
	if n.Margin < 0 || n.Margin > 100 {
		v.add("nvme.margin", "%d: want 0 to 100 °C", n.Margin)
	}
}
