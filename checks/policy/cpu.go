package policy

// CPU holds what is expected of a node's processors.
type CPU struct {
	Count  int    `json:"count" yaml:"count"`   // logical processors at work; 0: the most this node has shown
	Clocks string `json:"clocks" yaml:"clocks"` // clock sources that will do, separated by spaces; empty: any
}

// defaultCPU: the processors' own counters, and what hypervisors give in their stead.
func defaultCPU() CPU {
	return CPU{Clocks: "tsc arch_sys_counter kvm-clock hyperv_clocksource_tsc_page xen"}
}

func (v *validator) cpu(c CPU) {
	atLeast(v, "cpu.count", c.Count, 0)
	if c.Count > 65536 {
		v.add("cpu.count", "%d: no node has more than 65536 processors", c.Count)
	}
}
