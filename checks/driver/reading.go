// Package driver judges whether the GPU driver answers at all: a call that hangs, an init that hangs, a GPU that is lost.
package driver

// A Call is how the last round of calls on one GPU went.
type Call struct {
	Lost      bool   `json:"lost,omitempty"`       // NVML said GPU is lost
	Hung      string `json:"hung,omitempty"`       // the call that passed its deadline, as nvmlDeviceGetRemappedRows; empty if none
	HungCount int    `json:"hung_count,omitempty"` // fresh children, in a row, in which it passed the deadline
	Blocked   bool   `json:"blocked,omitempty"`    // not asked any more until the next boot
	Err       string `json:"err,omitempty"`        // any other failure that left the GPU unread
}

// An Init is how loading and starting NVML went.
type Init struct {
	OK         bool   `json:"ok"`
	Err        string `json:"err,omitempty"`         // what the loader or nvmlInit said
	Mismatch   bool   `json:"mismatch,omitempty"`    // Err is that kernel driver and library are of different versions
	HungCount  int    `json:"hung_count,omitempty"`  // fresh children, in a row, in which nvmlInit passed its deadline
	ChildStuck string `json:"child_stuck,omitempty"` // a child still alive 60 s after SIGKILL: its last call
}
