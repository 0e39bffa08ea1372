package policy

// Inventory holds what hardware a node should show.
type Inventory struct {
	Count  int    `json:"count" yaml:"count"`   // GPUs a node should have; 0: as many as were seen at enrolment
	Name   string `json:"name" yaml:"name"`     // product name every GPU should have; empty: any
	Driver string `json:"driver" yaml:"driver"` // driver version wanted; empty: any
}

func (v *validator) inventory(i Inventory) {
	atLeast(v, "inventory.count", i.Count, 0)
	if i.Count > 1024 {
		v.add("inventory.count", "%d: no node has more than 1024 GPUs", i.Count)
	}
}
