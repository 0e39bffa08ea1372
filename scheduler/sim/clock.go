package sim

import "container/heap"

// What can happen.
type kind int

const (
	arrives  kind = iota // a job comes
	ends                 // a run ends
	vacates              // a victim's grace is over
	breaks               // a node fails
	repaired             // a node comes back from repair
	screened             // its screen is over
	corrupts             // a node begins to compute wrongly
	found                // somebody finds that it does
	renews               // certificates are renewed
	plans                // the queue is planned anew
	wakes                // time alone lets a job start
)

// An event is one thing at one second.
type event struct {
	at   int64
	kind kind
	who  int64 // job or node
	run  int   // of a job: which start of it; of a node: which fault
	seq  int   // those of one second happen in the order in which they were foreseen
}

// A clock is the events to come.
type clock struct {
	events []event
	seq    int
}

func (c *clock) Len() int { return len(c.events) }
func (c *clock) Less(i, j int) bool {
	a, b := c.events[i], c.events[j]
	if a.at != b.at {
		return a.at < b.at
	}
	return a.seq < b.seq
}
func (c *clock) Swap(i, j int) { c.events[i], c.events[j] = c.events[j], c.events[i] }
func (c *clock) Push(x any)    { c.events = append(c.events, x.(event)) }
func (c *clock) Pop() any {
	last := c.events[len(c.events)-1]
	c.events = c.events[:len(c.events)-1]
	return last
}

// add foresees an event.
func (c *clock) add(at int64, k kind, who int64, run int) {
	if at >= never {
		return
	}
	c.seq++
	heap.Push(c, event{at, k, who, run, c.seq})
}

// next takes out the first event.
func (c *clock) next() event { return heap.Pop(c).(event) }
