package wire

import "time"

// A CaseVerb is an operator's order on a case, or a note in it.
type CaseVerb struct {
	Reason string    `json:"reason"`         // of a note: its text
	Until  time.Time `json:"until,omitzero"` // extend: when it is looked at again
}

// EvidenceKept says where a file of evidence is now.
type EvidenceKept struct {
	SHA256 string `json:"sha256"`
	Copies int    `json:"copies"` // control hosts that have it
}

// A TicketVerb is a person's word on an RMA ticket. What is empty stays as it is.
type TicketVerb struct {
	State    string    `json:"state,omitempty"` // accepted, shipped, received; closed to give it up
	Vendor   string    `json:"vendor,omitempty"`
	Warranty time.Time `json:"warranty,omitzero"`
	Owner    string    `json:"owner,omitempty"`
	Note     string    `json:"note,omitempty"`
}

// Keys are the keys that node certificates are signed with, by id: the current one and those still trusted.
type Keys struct {
	Current string            `json:"current"`
	Since   time.Time         `json:"since,omitzero"` // zero: since the fleet began
	Trusted map[string][]byte `json:"trusted"`        // ed25519 public keys
}
