package coordinator

import (
	"cmp"
	"context"
	"fmt"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Bounds on what one transaction takes of a batch: within etcd's, with room for what others do meanwhile.
const (
	batchOps   = 110
	batchBytes = 1 << 20
)

// SubmitJobs implements api.Jobs: each job is taken or refused by itself, those that are taken are durable when it returns.
// A line that was taken before, under the same key, is not taken again.
func (c *Coordinator) SubmitJobs(ctx context.Context, by string, b wire.Batch) ([]wire.BatchAnswer, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	if err := l.notOurs(); err != nil {
		return nil, err
	}
	if b.Key == "" || len(b.Key) > 64 {
		return nil, &invalidError{"a batch without a key of at most 64 bytes", "make one up: lines that are sent again are known by it"}
	}
	out, unsound := make([]wire.BatchAnswer, len(b.Jobs)), make([]bool, len(b.Jobs))
	for i := range b.Jobs {
		j := &b.Jobs[i]
		out[i].Line = j.Line
		if j.Script < 0 || j.Script >= len(b.Scripts) {
			return nil, &invalidError{fmt.Sprintf("line %d: script %d of %d", j.Line, j.Script, len(b.Scripts)), ""}
		}
		env := j.Ask.Env
		if len(env) == 0 {
			j.Ask.Env = b.Env
		}
		if err := sound(&j.Ask, b.Scripts[j.Script]); err != nil {
			out[i].Error, unsound[i] = err.Error(), true
		}
		j.Ask.Env = env
	}
	owner := map[int]int64{} // of each script whose environment is the batch's: the job it is kept with
	for next := 0; next < len(b.Jobs); {
		from, to, kept := next, next, map[int]int64{}
		err := l.do(ctx, func(t *tx) error {
			clear(kept)
			to = l.acceptSome(t, by, &b, out, unsound, from, owner, kept)
			return nil
		})
		if err != nil {
			return nil, err
		}
		for script, id := range kept {
			owner[script] = id
		}
		next = to
	}
	return out, nil
}

// acceptSome takes jobs from number from on until the transaction is full, and returns the number of the next. The apply
// loop may call it twice for the same: it notes all that follows in out and kept anew.
func (l *lead) acceptSome(t *tx, by string, b *wire.Batch, out []wire.BatchAnswer, unsound []bool, from int, owner, kept map[int]int64) int {
	bytes, first, last, n := 0, int64(0), int64(0), 0
	i := from
	for ; i < len(b.Jobs); i++ {
		j, a := &b.Jobs[i], &out[i]
		if unsound[i] {
			continue
		}
		a.ID, a.Again, a.Error = 0, false, ""
		line := batchLine{by + " " + b.Key, j.Line}
		if id, again := t.base.batches[line]; again {
			a.ID, a.Again = id, true
			if len(j.Ask.Env) == 0 {
				if old, ok := t.base.jobs[id]; ok {
					kept[j.Script] = old.Script
				}
			}
			continue
		}
		own := len(j.Ask.Env) > 0
		script64 := int64(0)
		if !own {
			script64 = cmp.Or(kept[j.Script], owner[j.Script])
		}
		if t.size()+3 > min(batchOps, store.MaxOps) && i > from || bytes > batchBytes {
			break
		}
		ask := j.Ask
		ask.Env = nil
		id, err := l.accept(t, entrant{by: by, ask: ask, script: script64, batch: line})
		if err != nil {
			a.Error = err.Error()
			continue
		}
		a.ID = id
		if script64 == 0 {
			sc := script{Text: b.Scripts[j.Script], Env: b.Env}
			if own {
				sc.Env = j.Ask.Env
			} else {
				kept[j.Script] = id
			}
			t.scripts[id] = &sc
			for _, e := range sc.Env {
				bytes += len(e)
			}
			bytes += len(sc.Text)
		}
		bytes += 2 << 10 // the job itself
		if first == 0 {
			first = id
		}
		last = id
		n++
	}
	if n > 0 {
		t.record(wire.HistoryEntry{Event: fmt.Sprintf("jobs %d to %d submitted, %d of a batch", first, last, n), By: by})
	}
	return i
}
