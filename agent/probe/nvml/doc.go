// Package nvml reads the NVIDIA driver through NVML without ever trusting it to answer.
//
// The agent makes no driver call itself. A Supervisor in the agent starts a child process (Child), which loads
// libnvidia-ml.so.1 and names each call before it makes it. A child that does not answer in time is killed and a fresh one
// started; a GPU that hangs in several fresh children running is blocked: named in a file with the boot id, and not asked
// again by this or any later agent until the next boot. A call into a wedged driver can sleep uninterruptibly, so that
// even SIGKILL waits; such a process is left behind and reported.
// Sources: leptonai/gpud #117 (nvidia-smi in D state), #1183 (a missing symbol kills the process), NVIDIA/go-nvml #152
// (nvmlInit hangs after hours), NVIDIA/open-gpu-kernel-modules #446 (each call on a hung GSP takes 45 s).
package nvml

import (
	"github.com/assay-gpu/assay/checks/catalog"
)

// A request asks the child for one thing.
type request struct {
	Do    string `json:"do"`              // init, node, gpu or quit
	Index int    `json:"index,omitempty"` // gpu: as the driver counts, unless PCI is given
	PCI   string `json:"pci,omitempty"`   // gpu: open by address

	Events bool `json:"events,omitempty"` // init: tell of XIDs as the driver raises them, on each GPU once it has been read
}

// The values of request.Do.
const (
	doInit = "init"
	doNode = "node"
	doGPU  = "gpu"
	doQuit = "quit"
)

// A message is one line from the child. A request is answered by any number of messages with Call or Named, then one with
// the reply.
type message struct {
	Call  string            `json:"call,omitempty"`  // the driver call that comes next
	Named *catalog.GPUState `json:"named,omitempty"` // who the GPU is, before it is read
	Init  *initReply        `json:"init,omitempty"`
	Node  *nodeReply        `json:"node,omitempty"`
	GPU   *gpuReply         `json:"gpu,omitempty"`

	Event *XIDEvent `json:"event,omitempty"` // no answer: it comes when it comes
}

type initReply struct {
	Err string `json:"err,omitempty"` // empty: NVML is ready
}

type nodeReply struct {
	Driver  string `json:"driver,omitempty"`
	Library string `json:"library,omitempty"` // version
	Count   int    `json:"count"`
	Err     string `json:"err,omitempty"` // why there is no count
}

type gpuReply struct {
	State catalog.GPUState `json:"state"`
	Gone  bool             `json:"gone,omitempty"` // the driver knows no GPU at this address or index
}
