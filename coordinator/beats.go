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
	jobs     []string
	bootID   string
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
	b.last[hb.Node] = beat{at: time.Now(), stopping: hb.Stopping, jobs: hb.JobsOnNode, bootID: hb.BootID}
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

// lostNow decides which of the silent nodes are lost. More than the policy's share and number at once, or a whole leaf
// of three or more, is the network's fault or ours: then none is lost, and mass says why in words. It is pure.
func lostNow(silent []quiet, lostBefore map[string]bool, sizes map[string]int, total int, p policy.Lifecycle) (lost []string, mass string) {
	byLeaf := map[string]int{}
	fresh := 0
	for _, q := range silent {
		if q.leaf != "" {
			byLeaf[q.leaf]++
		}
		if !lostBefore[q.name] {
			fresh++
			lost = append(lost, q.name)
		}
	}
	if fresh == 0 {
		return nil, ""
	}
	for _, leaf := range sortedKeys(byLeaf) {
		if n := byLeaf[leaf]; n >= 3 && n == sizes[leaf] {
			return nil, "every node of leaf " + leaf + " is silent"
		}
	}
	if fresh >= p.LostNodes && float64(fresh) > p.LostShare*float64(total) {
		return nil, plural(fresh, "node") + " of " + plural(total, "node") + " fell silent at once"
	}
	return lost, ""
}
