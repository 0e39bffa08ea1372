package coordinator

import (
	"time"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/guard"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// A state is all that the leader knows, as committed. Only the apply loop changes it, and only by publishing a
// transaction that etcd took.
type state struct {
	nodes    map[string]lifecycle.Node
	versions map[string]uint64 // by node: the etcd revision of the last change that its agent must hear of
	cases    map[string]wire.Case
	effects  map[string]pending // not yet ticked off, by id
	tokens   map[string]authority.TokenRecord
	reported map[string][]string // by node: ids of the last reports that changed something, oldest first
	refusals map[string]refusal  // by job: prolog exits that we permitted
	guard    guard.Books
	policy   policy.Policy
	rollout  *rollout              // nil: none is on
	learned  map[string]policy.Set // by product: what most of its nodes show. Replaced, never changed
	policies *policies             // policy as it holds for single nodes
	counters counters
	revision uint64          // of the last commit
	book     rules.Book      // of the built-in scheduler: who may have how much
	usage    usage           // as it was last written
	onces    map[string]once // writes of persons that came with a key, by caller and key
	drill    wire.Drill      // the one under way, or the last
	tickets  map[string]rma.Ticket
	parts    map[string]rma.Part // by serial, or UUID where a board has none
	jobState
	index
}

func newState() *state {
	return &state{
		nodes: map[string]lifecycle.Node{}, versions: map[string]uint64{}, cases: map[string]wire.Case{},
		effects: map[string]pending{}, tokens: map[string]authority.TokenRecord{}, refusals: map[string]refusal{}, reported: map[string][]string{},
		policy: policy.Default(), policies: new(policies), tickets: map[string]rma.Ticket{}, parts: map[string]rma.Part{}, onces: map[string]once{}, jobState: newJobState(), index: newIndex(), book: rules.NewBook(),
	}
}

// counters are the numbers that only rise. They are written with every transaction.
type counters struct {
	Serial  uint64    `json:"serial"`  // last certificate
	Effect  uint64    `json:"effect"`  // last effect
	History uint64    `json:"history"` // last history entry
	Job     int64     `json:"job"`     // last job of the built-in scheduler
	Policy  int       `json:"policy"`  // last version given to a policy; 0 before there was a rollout
	Time    time.Time `json:"time"`    // leader time of the last commit

	Head string `json:"head,omitempty"` // hash of the last history entry
}

// A pending effect is recorded in the transaction that asked for it, and ticked off in the one that ends it.
type pending struct {
	wire.Effect
	Seq uint64 `json:"seq"` // order within its node
}

// A refusal is a job that a prolog of ours turned away with our permit.
type refusal struct {
	Job      string    `json:"job"`
	Node     string    `json:"node"`
	Restarts int       `json:"restarts"` // of the job when it was refused
	Releases int       `json:"releases"` // times we have released it since
	At       time.Time `json:"at"`
}

// leaderTime is max(wall clock, last committed): it never runs backwards, whoever leads.
func leaderTime(wall, committed time.Time) time.Time {
	wall = wall.UTC().Truncate(time.Millisecond)
	if wall.Before(committed) {
		return committed
	}
	return wall
}
