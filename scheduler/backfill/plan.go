package backfill

import "github.com/assay-gpu/assay/scheduler"

// A Job is a gang in the order. Its Gang says how long it may run. Jobs of one ID that stand one after the other are ways to
// start the same one: by the first that can now, else by that which can earliest.
type Job struct {
	ID   string
	Gang scheduler.Gang
	// Kept is what was freed for it by preemption: nobody else may have it, and it starts there as soon as all is free,
	// which is at KeptUntil at the latest.
	Kept      []scheduler.Take
	KeptUntil int64
	NoReserve bool // tried for now only: Slurm's QOS flag NoReserve
	Urgent    bool // gets a planned start between two plans as well: a gang that lost a node
	// Had is the nodes that an urgent gang had, in rank order: it goes back to them, with another in place of the lost one, if
	// that can be.
	Had []int32
}

// A Gate holds back jobs that a limit forbids to start. A job that it does not admit gets no planned start either, as in
// Slurm: it waits for the limit, not for nodes.
type Gate interface {
	Admit(i int) bool // the job of that place in the order, after all that were charged
	Charge(i int)     // it starts
}

// Options are how far a plan looks.
type Options struct {
	Depth  int   // jobs that get a planned start
	Window int64 // seconds; starts later than this are not planned
	EASY   bool  // only the first job that waits gets a planned start
	Strict bool  // nobody passes a job that waits: first come, first served
	// Renew plans as if each certified node were certified anew before its certificate ends. Without it no start is planned
	// later than the certificates last, and where long jobs keep nodes beyond that, a gang has no planned start at all.
	// What starts now always needs a certificate that holds.
	Renew bool
}

// DefaultOptions look at 1,000 jobs and a week.
func DefaultOptions() Options { return Options{Depth: 1000, Window: 7 * 24 * 3600} }

// A Start is a job that starts now.
type Start struct {
	Index int // in the order
	Plan  scheduler.Plan
}

// A Planned is a job that starts later.
type Planned struct {
	ID         string
	Start, End int64 // Unix seconds; End is its limit, rounded up
	Nodes      []scheduler.Take
	Cause      Cause
}

// A Cause is what makes a job wait until its planned start.
type Cause struct {
	Kind  Kind
	ID    string // of the job or reservation
	Until int64  // when that ends at the latest
}

// A Kind is what kind of thing makes a job wait.
type Kind int

// The kinds of cause.
const (
	NoCause     Kind = iota
	RunningJob       // ends then, at the latest
	JobBefore        // goes before it, and has the nodes until then
	Reserved         // a reservation or maintenance
	Switches         // it insists on few switches until then
	Begins           // the reservation it runs in begins then
	Certificate      // nothing taken: no node is certified long enough before
)

// A Schedule is what a pass decided.
type Schedule struct {
	At      int64
	Starts  []Start
	Planned map[string]Planned
	Limited []int // places in the order of those that the gate held back
	// Sweeps and Spots count what it cost: walks over all slots, and placements tried.
	Sweeps, Spots int
}

// Plan makes a schedule from nothing but the snapshot and the order. gate may be nil.
func Plan(snap *scheduler.Snapshot, order []Job, gate Gate, o Options) *Schedule {
	return newPass(snap, order, gate, o, nil).run()
}

// Update makes a schedule from the one before: planned starts that still hold are kept, those that do not are made anew in
// their turn, and jobs that can start now do. Jobs that had no planned start get none until the next Plan, unless urgent.
func Update(snap *scheduler.Snapshot, order []Job, gate Gate, o Options, before *Schedule) *Schedule {
	return newPass(snap, order, gate, o, before.Planned).run()
}
