// Package certificate says what a node's certificate is and when it holds.
//
// A certificate is dated, expiring proof that this hardware, with this driver, passed a named screen. It travels with
// the seconds it has left, so that no node needs a right clock. The package is pure.
package certificate

import (
	"time"

	"github.com/assay-gpu/assay/checks"
)

// A Certificate names the node and GPUs that passed, how deep, under what conditions, and until when.
type Certificate struct {
	Serial     uint64       `json:"serial"` // only rises, over the whole fleet
	Node       string       `json:"node"`
	GPUs       []string     `json:"gpus"` // UUIDs covered, sorted
	Level      checks.Level `json:"level"`
	Tested     []string     `json:"tested"`
	NotTested  []string     `json:"not_tested,omitempty"`
	Suite      string       `json:"suite"` // digest of the suite that ran
	Driver     string       `json:"driver"`
	BootID     string       `json:"boot_id"`
	NodeSerial string       `json:"node_serial,omitempty"`
	Adopted    bool         `json:"adopted,omitempty"` // granted to a live node that never passed intake
	IssuedAt   time.Time    `json:"issued_at"`         // leader time
	Expires    time.Time    `json:"expires"`
	GraceUntil time.Time    `json:"grace_until"` // hooks accept it until then; placement never does
	KeyID      string       `json:"key_id,omitempty"`
	Signature  []byte       `json:"signature,omitempty"` // ed25519 over Payload
}
