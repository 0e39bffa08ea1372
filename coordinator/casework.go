package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Bounds on what one case may keep, so that a broken node cannot fill a control host's disk.
const (
	evidenceFiles = 32
	evidenceBytes = 256 << 20
)

// OrderCase implements api.Casework.
func (c *Coordinator) OrderCase(ctx context.Context, by, verb, id string, v wire.CaseVerb) (wire.Case, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Case{}, err
	}
	err = l.do(ctx, func(t *tx) error {
		k, ok := t.knownCase(id)
		if !ok {
			return unknownCase(id)
		}
		if verb == api.CaseNote {
			t.noteCase(k, by, v.Reason)
			return nil
		}
		if !k.Closed.IsZero() {
			return &refusedError{fmt.Sprintf("%s case %s: it was closed on %s: %s", verb, id, k.Closed.Format("2006-01-02"), k.Outcome), "a note can still be added: assay case note " + id + " TEXT"}
		}
		return t.apply(k.Node, lifecycle.OrderCase{At: lifecycle.At{Time: t.now}, By: by, Reason: v.Reason, Case: id, Verb: verb, Until: v.Until}, by)
	})
	if err != nil {
		return wire.Case{}, err
	}
	return c.Case(ctx, id)
}

func unknownCase(id string) error {
	return &notFoundError{"case " + id, "`assay case list --all` shows those kept"}
}

func (t *tx) knownCase(id string) (wire.Case, bool) {
	if k, ok := t.cases[id]; ok {
		return k, true
	}
	k, ok := t.base.cases[id]
	return k, ok
}

// noteCase writes a line in a case's timeline. That of a closed case is stored with it.
func (t *tx) noteCase(k wire.Case, by, text string) {
	t.record(wire.HistoryEntry{Node: k.Node, Event: "note text=" + quote(text), Case: k.ID, By: by})
	if !k.Closed.IsZero() {
		k.Timeline = append(k.Timeline[:len(k.Timeline):len(k.Timeline)], t.history[len(t.history)-1])
		t.cases[k.ID] = k
	}
}

// kept counts what each case has kept in this term, in bytes by name.
type kept struct {
	mu sync.Mutex
	by map[string]map[string]int64
}

// room says how much more the case may keep under name, or why nothing.
func (k *kept) room(id, name string) (int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left, files := int64(evidenceBytes), 0
	for n, size := range k.by[id] {
		if n != name {
			left, files = left-size, files+1
		}
	}
	if files >= evidenceFiles || left <= 0 {
		return 0, &refusedError{fmt.Sprintf("evidence %s of case %s: a case keeps %d files and %d MiB at the most", name, id, evidenceFiles, evidenceBytes>>20), "it stays on the node, in evidence/" + id + " of its state directory"}
	}
	return left, nil
}

func (k *kept) add(id, name string, size int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[string]map[string]int64{}
	}
	if k.by[id] == nil {
		k.by[id] = map[string]int64{}
	}
	k.by[id][name] = size
}

// KeepEvidence implements api.Casework. Only the node whose case it is may add to it, and only while evidence is gathered.
func (c *Coordinator) KeepEvidence(ctx context.Context, node, id, name, sum string, r io.Reader) (wire.EvidenceKept, error) {
	l, err := c.leading()
	if err != nil {
		return wire.EvidenceKept{}, err
	}
	if c.cfg.Evidence == nil {
		return wire.EvidenceKept{}, &refusedError{"evidence: this control host keeps none", ""}
	}
	if k := l.node(node).Case; k == nil || k.ID != id || k.Evidence != "collecting" {
		return wire.EvidenceKept{}, &refusedError{fmt.Sprintf("evidence of node %s for case %s: it gathers none for that case now", node, id), ""}
	}
	left, err := l.kept.room(id, name)
	if err != nil {
		return wire.EvidenceKept{}, err
	}
	counted := &counter{r: io.LimitReader(r, left)}
	if err := c.cfg.Evidence.Put(sum, counted); err != nil {
		return wire.EvidenceKept{}, err
	}
	l.kept.add(id, name, counted.n)
	return wire.EvidenceKept{SHA256: sum, Copies: 1 + l.copyOut(ctx, sum)}, nil
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Evidence implements api.Casework: from this host, or else from another.
func (c *Coordinator) Evidence(ctx context.Context, sum string) (io.ReadCloser, int64, error) {
	l, err := c.leading()
	if err != nil {
		return nil, 0, err
	}
	f, size, err := c.Copy(ctx, sum)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, size, err
	}
	if err := l.copyIn(ctx, sum); err != nil {
		return nil, 0, &notFoundError{"evidence " + sum, "no control host has it; it may still be on the node, in evidence/CASE of its state directory"}
	}
	return c.Copy(ctx, sum)
}

// Copy implements api.Casework.
func (c *Coordinator) Copy(_ context.Context, sum string) (io.ReadCloser, int64, error) {
	if c.cfg.Evidence == nil {
		return nil, 0, fmt.Errorf("evidence %.12s: %w", sum, fs.ErrNotExist)
	}
	f, size, err := c.cfg.Evidence.Get(sum)
	if err != nil {
		return nil, 0, err
	}
	return f, size, nil
}

// PutCopy implements api.Casework.
func (c *Coordinator) PutCopy(_ context.Context, sum string, r io.Reader) error {
	if c.cfg.Evidence == nil {
		return &refusedError{"evidence: this control host keeps none", ""}
	}
	return c.cfg.Evidence.Put(sum, r)
}
