package wire

import (
	"time"

	"github.com/assay-gpu/assay/checks/policy"
)

// RiskDrain is the risk of a drill that really takes its node out of service and brings it back.
const RiskDrain = "drain"

// A DrillAsk asks for a drill: a fault that is made up on one node, marked as such, and goes the way of a real one.
type DrillAsk struct {
	Node       string          `json:"node,omitempty"` // empty: the control plane takes the next in turn
	GPU        *int            `json:"gpu,omitempty"`  // index; nil: the node's first
	Reason     string          `json:"reason,omitempty"`
	AcceptRisk string          `json:"accept_risk,omitempty"` // RiskDrain
	Within     policy.Duration `json:"within,omitzero"`       // 0: as policy says; with RiskDrain, an hour
}

// How a drill ended.
const (
	DrillPassed = "passed"
	DrillFailed = "failed"
)

// A Drill is one drill, from its order to its return.
type Drill struct {
	ID       string      `json:"id"` // D-7F3K; empty: there has been none
	Node     string      `json:"node"`
	GPU      int         `json:"gpu"` // index
	By       string      `json:"by"`
	Reason   string      `json:"reason,omitempty"`
	Drains   bool        `json:"drains,omitempty"` // the node is really taken out and brought back
	Started  time.Time   `json:"started"`
	Deadline time.Time   `json:"deadline"`
	Steps    []DrillStep `json:"steps"`
	Waits    string      `json:"waits,omitempty"` // the step that comes next
	Ended    time.Time   `json:"ended,omitzero"`
	Outcome  string      `json:"outcome,omitempty"` // DrillPassed, DrillFailed
	Why      string      `json:"why,omitempty"`     // it failed

	LastPassed time.Time `json:"last_passed,omitzero"` // when a drill passed last, this one or an earlier one
}

// A DrillStep is one link of the chain that has done its part.
type DrillStep struct {
	Name   string    `json:"name"` // ordered, made, detected, decided, paged, drained, resumed, returned
	At     time.Time `json:"at"`
	Detail []string  `json:"detail,omitempty"`
}
