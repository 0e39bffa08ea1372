package cycle

import (
	"slices"
	"time"

	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/queue"
)

// claimFor is how long another node is kept for a gang that lost one: its ranks are ended meanwhile, which takes a minute at
// most, and then it starts first.
const claimFor = 5 * time.Minute

// Claim keeps, for a running gang that lost a node and is being ended for it, the node that stands in for the lost one:
// nobody else may start there before it has come back (volcano 5805). It reports whether there is such a node.
func (c *Cycle) Claim(id int64, now int64) bool {
	j, work := c.Queue.Job(id), c.Fleet.Work(ID(id))
	if c.claims[id] || j == nil || j.State != queue.Running || work == nil {
		return c.claims[id]
	}
	snap := c.Fleet.Snapshot()
	var lost []int32
	for _, t := range work.Nodes {
		if n := snap.Node(t.Node); n.Bar != nil || n.Certificate.GPUs&t.GPUs != t.GPUs {
			lost = append(lost, t.Node)
		}
	}
	g := c.gang(snap, j)
	if len(lost) == 0 || len(work.Nodes) != g.Nodes {
		return false
	}
	p := scheduler.Swap(snap, g, work.Nodes, lost)
	if !p.OK() {
		return false
	}
	var others []int32
	for _, t := range p.Nodes {
		if !slices.ContainsFunc(work.Nodes, func(h scheduler.Take) bool { return h.Node == t.Node }) {
			others = append(others, t.Node)
		}
	}
	from := time.Unix(now, 0)
	c.Fleet.Reserve(scheduler.Reservation{Name: claimName(id), Start: from, End: from.Add(claimFor), Nobody: true, Nodes: snap.Set(others...)})
	if c.claims == nil {
		c.claims = map[int64]bool{}
	}
	c.claims[id] = true
	return true
}

func claimName(id int64) string { return "claim of job " + ID(id) }

// unclaim gives up what was kept for gangs that no longer run: they stand first in the order now, or have ended.
func (c *Cycle) unclaim() {
	for id := range c.claims {
		if j := c.Queue.Job(id); j == nil || j.State != queue.Running {
			c.Fleet.Unreserve(claimName(id))
			delete(c.claims, id)
		}
	}
}
