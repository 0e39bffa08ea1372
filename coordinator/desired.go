package coordinator

import (
	"context"
	"slices"
	"time"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Desired implements api.Agents: it waits for a version above after and returns the node's desired state whole. A
// version is the etcd revision of the last change, so it only rises, whoever leads.
func (c *Coordinator) Desired(ctx context.Context, node string, after uint64) (wire.Desired, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Desired{}, err
	}
	for {
		l.mu.RLock()
		n, known := l.st.nodes[node]
		version := l.st.versions[node]
		if known && version > after {
			d := l.desired(n, version)
			l.mu.RUnlock()
			return d, nil
		}
		wake := l.wakeChannel(node)
		l.mu.RUnlock()
		if !known {
			return wire.Desired{}, &UnknownNodeError{node}
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return wire.Desired{}, context.Cause(ctx)
		case <-l.term.Done():
			return wire.Desired{}, errDeposed
		}
	}
}

// wakeChannel is closed when the node next changes. The caller holds l.mu, for reading or writing.
func (l *lead) wakeChannel(node string) <-chan struct{} {
	l.wakeMu.Lock()
	defer l.wakeMu.Unlock()
	ch, ok := l.wakes[node]
	if !ok {
		ch = make(chan struct{})
		l.wakes[node] = ch
	}
	return ch
}

// desired is what the agent is to hold and do. The caller holds l.mu.
func (l *lead) desired(n lifecycle.Node, version uint64) wire.Desired {
	now := leaderNow(l.st)
	d := wire.Desired{
		Version: version, Term: l.term.Number(), Node: n.Name, State: string(n.State), Marks: marks(n, now),
		Managed: n.State != lifecycle.Retired, Policy: policyIn(l.st.policy, l.st.rollout, n.Name), Learned: l.st.learned[skuOf(n)], Keys: l.ring.Load().public(),
		Control: l.cfg.urls(),
	}
	if len(n.Expected.GPUs) > 0 {
		expected := n.Expected
		d.Expected = &expected
	}
	if c := n.Certificate; c != nil {
		d.Certificate = &wire.GrantedCertificate{
			Certificate: *c, Suspended: n.Suspended,
			RemainingSeconds: c.Expires.Sub(now).Seconds(), GraceRemainingSeconds: c.GraceUntil.Sub(now).Seconds(),
		}
	}
	d.Gangs = l.st.orders(n.Name)
	for _, e := range l.st.effectsOf(n.Name) {
		if ok, _ := stands(n, e); ok && agentCarries(e.Kind, l.cfg.Slurm != nil) {
			e.Term = l.term.Number() // a new leader stands behind what the last one asked for
			d.Effects = append(d.Effects, e.Effect)
		}
	}
	return d
}

// agentCarries reports whether an effect is the agent's to carry out.
func agentCarries(kind string, slurm bool) bool {
	switch kind {
	case lifecycle.EffectScreen, lifecycle.EffectEvidence, lifecycle.EffectResetGPU, lifecycle.EffectDrill:
		return true
	case lifecycle.EffectReboot:
		return !slurm
	}
	return false
}

// marks lists the marks that hold at t, sorted.
func marks(n lifecycle.Node, t time.Time) []string {
	var out []string
	for _, m := range sortedKeys(n.Marks) {
		if n.Marked(m, t) {
			out = append(out, m)
		}
	}
	return slices.Clip(out)
}
