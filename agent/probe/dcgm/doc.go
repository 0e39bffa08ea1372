// Package dcgm asks DCGM: its health watches, through libdcgm.so.4 in a child that can be killed, and its diagnostic, by running
// dcgmi.
//
// The library is loaded at run time and only in the child (Child), which names each call before it makes it, ends after one
// look, and is run by the Prober with a deadline. A host engine that hangs (cluster-toolkit 6230, aws-parallelcluster 6777)
// costs one child. The binding (library) knows six structures of dcgm_structs.h and is held to DCGM's own size assertions;
// what a look needs of it is the interface Engine, which NVIDIA's go-dcgm could fill as well: it is cgo against DCGM's
// headers, and brings all of DCGM's API.
package dcgm

import "github.com/assay-gpu/assay/checks/dcgm"

// An Engine is what a look needs of DCGM. Calls may hang.
type Engine interface {
	// Connect reaches the host engine at address or, where that is empty, starts one in this process. It gives its version.
	Connect(address string) (version string, err error)
	// Look sets all health watches on all GPUs, gives what they have seen, and says whether they were set before.
	Look() (h dcgm.Health, watched bool, err error)
}

// A message is one line from the child: a call that comes next, or the answer.
type message struct {
	Call    string       `json:"call,omitempty"`
	Health  *dcgm.Health `json:"health,omitempty"`
	Watched bool         `json:"watched,omitempty"` // the watches had been set before
}
