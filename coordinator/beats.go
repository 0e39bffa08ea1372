package coordinator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// beats keeps the last heartbeat of each node. It stays in memory: nothing is written for one.
type beats struct {
	mu   sync.Mutex
	last map[string]beat
}

type beat struct {
	at       time.Time // local clock, monotonic
	stopping bool      // announced: its silence is not a fault
	bootID   string
	policy   int    // version that the agent holds
	serial   uint64 // of the certificate that it holds
}

// Heartbeat implements api.Agents.
func (c *Coordinator) Heartbeat(ctx context.Context, hb wire.Heartbeat) error {
	l, err := c.leading()
	if err != nil {
		return err
	}
	prev, had := l.beats.put(hb)
	l.mu.RLock()
	n, known := l.st.nodes[hb.Node]
	l.mu.RUnlock()
	if !known {
		return &UnknownNodeError{hb.Node}
	}
	back := n.Lost
	booted := hb.BootID != "" && n.BootID != "" && hb.BootID != n.BootID && (!had || prev.bootID != hb.BootID)
	jobs := l.cfg.Slurm == nil && !slices.Equal(jobIDs(n.Jobs), hb.JobsOnNode)
	if !back && !booted && !jobs {
		return nil
	}
	return l.do(ctx, func(t *tx) error {
		at := lifecycle.At{Time: t.now}
		if back {
			if err := t.apply(hb.Node, lifecycle.Back{At: at}, "agent"); err != nil {
				return err
			}
		}
		if booted {
			// The hardware is as it was seen last; the first report of this boot says what it really is.
			inv := n.Inventory
			inv.Node, inv.BootID = hb.Node, hb.BootID
			if hb.Driver != "" {
				inv.Driver = hb.Driver
			}
			if err := t.apply(hb.Node, lifecycle.Seen{At: at, Inventory: inv}, "agent"); err != nil {
				return err
			}
		}
		if jobs {
			ev := lifecycle.JobsChanged{At: at}
			for _, id := range hb.JobsOnNode {
				ev.Jobs = append(ev.Jobs, lifecycle.JobRef{ID: id})
			}
			return t.apply(hb.Node, ev, "agent")
		}
		return nil
	})
}

func (b *beats) put(hb wire.Heartbeat) (prev beat, had bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		b.last = map[string]beat{}
	}
	prev, had = b.last[hb.Node]
	b.last[hb.Node] = beat{at: time.Now(), stopping: hb.Stopping, bootID: hb.BootID, policy: hb.PolicyVersion, serial: hb.CertSerial}
	return prev, had
}

func (b *beats) of(node string) (beat, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, ok := b.last[node]
	return last, ok
}

func jobIDs(js []lifecycle.JobRef) []string {
	var ids []string
	for _, j := range js {
		ids = append(ids, j.ID)
	}
	return ids
}

// A quiet node is one whose silence may be held against it.
type quiet struct {
	name, leaf string
}

// lostNow decides which of the silent nodes are lost. A whole leaf of three or more, or more than the policy's share and
// number at once, is the network's fault or ours: none of those is lost, and mass says why, by a key that stays the same
// while it lasts. It is pure.
func lostNow(silent []quiet, lostBefore map[string]bool, sizes map[string]int, total int, p policy.Lifecycle) (lost []string, mass map[string]string) {
	mass = map[string]string{}
	byLeaf := map[string]int{}
	for _, q := range silent {
		if q.leaf != "" {
			byLeaf[q.leaf]++
		}
	}
	for _, q := range silent {
		if n := byLeaf[q.leaf]; n >= 3 && n >= sizes[q.leaf] {
			if !lostBefore[q.name] {
				mass["leaf "+q.leaf] = "every node of leaf " + q.leaf + " is silent"
			}
			continue
		}
		if !lostBefore[q.name] {
			lost = append(lost, q.name)
		}
	}
	if n := len(lost); n >= p.LostNodes && float64(n) > p.LostShare*float64(total) {
		mass["fleet"] = plural(n, "node") + " of " + plural(total, "node") + " fell silent at once"
		return nil, mass
	}
	return lost, mass
}
