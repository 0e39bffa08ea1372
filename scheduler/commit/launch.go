package commit

import (
	"math/bits"
	"time"

	"github.com/assay-gpu/assay/scheduler"
)

// A Phase is where a launch stands.
type Phase string

const (
	Reserved Phase = "reserved" // its nodes are taken; each checks itself again
	Going    Phase = "going"    // its ranks start, or run
	Ending   Phase = "ending"   // what runs is being ended
)

// An Outcome is how a launch ended, decided when it began to end.
type Outcome string

const (
	Completed Outcome = "completed"   // every rank ended with 0
	Failed    Outcome = "failed"      // a rank did not
	Timeout   Outcome = "timeout"     // the job's limit was over
	Cancelled Outcome = "cancelled"   // by a person
	Requeued  Outcome = "requeued"    // by a person, who wants it started again
	NodeFail  Outcome = "node_fail"   // a node went away under it
	Unstarted Outcome = "not_started" // no user code ran: a node failed at the barrier, or time was up there
)

// A Launch is one attempt to run a job. It is stored whole, under one key.
type Launch struct {
	ID       string        `json:"id"` // the job's id and the number of the attempt: 12.1
	Job      int64         `json:"job"`
	Phase    Phase         `json:"phase"`
	Seats    []Seat        `json:"seats"`            // in rank order
	Ranks    int           `json:"ranks,omitempty"`  // on each node; 0: one for each GPU
	Joined   int           `json:"joined,omitempty"` // GPUs of a node in groups of so many that NVLink joins; 0: as it comes
	Limit    time.Duration `json:"limit,omitempty"`
	Reserved time.Time     `json:"reserved"`
	Went     time.Time     `json:"went,omitzero"`
	Ended    time.Time     `json:"ended,omitzero"` // when it began to end

	Outcome Outcome `json:"outcome,omitempty"`
	Why     string  `json:"why,omitempty"`
	Blame   string  `json:"blame,omitempty"` // the node at fault, if one is
	Exit    int     `json:"exit,omitempty"`  // of the first rank that did not end well
}

// A Seat is what the launch has of one node. The names are short: a gang of 10,000 nodes is one key of the store.
type Seat struct {
	Node   string         `json:"n"`
	GPUs   uint32         `json:"g,omitempty"` // mask
	Part   scheduler.Part `json:"p,omitzero"`
	Serial uint64         `json:"s"` // the certificate it was placed on
}

// Bounds on what a launch waits for.
const (
	ReadyWithin   = 25 * time.Second // a reservation that is not ready by then ends; the agents themselves drop it after DropAfter
	DropAfter     = 30 * time.Second
	ConfirmWithin = 20 * time.Second // from GO until a node has said that its ranks run
	GoneWithin    = 60 * time.Second // from the order to stop until a node that says nothing is given up
)

// A Said is what a node said last of a launch.
type Said uint8

const (
	Nothing Said = iota
	Ready        // checked, and waiting for GO
	Running      // its ranks run
	Refused      // its check failed; nothing runs and nothing will
	Exited       // nothing runs any more
)

// A Word is one node's.
type Word struct {
	Said   Said
	Why    string // refused or lost: why
	Lost   bool   // exited by the node's fault
	Exit   int    // of its first rank that did not end well
	Serial uint64 // of the certificate it held when it was ready
}

// Begin makes the launch of g's plan at t.
func Begin(id string, job int64, g scheduler.Gang, seats []Seat, t time.Time) Launch {
	return Launch{ID: id, Job: job, Phase: Reserved, Seats: seats, Ranks: g.Ranks, Joined: g.Joined, Limit: g.Limit, Reserved: t}
}

// RanksOn is how many ranks the launch has on a seat.
func (l *Launch) RanksOn(s Seat) int {
	if l.Ranks > 0 {
		return l.Ranks
	}
	return max(bits.OnesCount32(s.GPUs), 1)
}

// end is l on its way out.
func (l Launch) end(o Outcome, blame, why string, exit int, t time.Time) Launch {
	l.Phase, l.Outcome, l.Blame, l.Why, l.Exit, l.Ended = Ending, o, blame, why, exit, t
	return l
}

// Cancel ends l by a person's word. A launch that is ending already keeps its outcome.
func (l Launch) Cancel(why string, t time.Time) Launch {
	if l.Phase == Ending {
		return l
	}
	return l.end(Cancelled, "", why, 0, t)
}

// Requeue ends l by the word of a person who wants the job started again.
func (l Launch) Requeue(why string, t time.Time) Launch {
	if l.Phase == Ending {
		return l
	}
	return l.end(Requeued, "", why, 0, t)
}
