package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assay-gpu/assay/coordinator/store"
)

// errNothingToMove says that the source was never led: most likely the wrong one was named.
var errNothingToMove = errors.New("the store to move from holds nothing")

// Move copies everything from a store that nobody uses into one that holds nothing, and says how many keys that were. The
// new store counts revisions anew; what is added to them makes agents' versions rise all the same.
func Move(ctx context.Context, from, to *store.Store) (keys int, err error) {
	entries, rev, err := from.List(ctx, "")
	if err != nil {
		return 0, err
	}
	term, err := from.LastTerm(ctx)
	if err != nil {
		return 0, err
	}
	var gen generation
	var ops []store.Op
	for _, e := range entries {
		switch {
		case store.Own(e.Key):
		case e.Key == keyGeneration:
			if err := json.Unmarshal(e.Value, &gen); err != nil {
				return 0, fmt.Errorf("%s: %w", e.Key, err)
			}
		default:
			ops = append(ops, store.Op{Key: e.Key, Value: e.Value})
		}
	}
	if len(ops) == 0 {
		return 0, errNothingToMove
	}
	if gen.Schema > schema {
		return 0, &NewerDataError{gen.Schema, schema}
	}
	if gen.Schema == 0 {
		gen.Schema = 1 // it was not written down then
	}
	gen.Base += uint64(rev)
	ops = append(ops, store.Op{Key: keyGeneration, Value: marshal(keyGeneration, gen)})
	return len(ops), to.Fill(ctx, ops, term)
}
