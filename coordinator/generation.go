package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
)

// schema is the version of what is stored. Data of an older one is brought forward by migrations; newer data is refused.
const schema = 2

// A generation counts restores of the store, and says what form its data has.
type generation struct {
	Schema   int       `json:"schema"`
	Restored int       `json:"restored,omitempty"`  // how often it was restored from a backup
	At       time.Time `json:"at,omitzero"`         // when last
	Base     uint64    `json:"base,omitempty"`      // added to etcd's revisions, so that versions rise over a restore
	Observe  bool      `json:"observe,omitempty"`   // a restore made the policy observe, until somebody lifts that
	Before   []byte    `json:"before,omitempty"`    // the policy that holds again then, JSON
	LiftedBy string    `json:"lifted_by,omitempty"` // who lifted it
}

// A NewerDataError says that a later version of assay has written the store. Nothing is read of it or written to it.
type NewerDataError struct{ Have, Know int }

func (e *NewerDataError) Error() string {
	return fmt.Sprintf("the store holds data of schema %d, and this assayd knows schemas up to %d", e.Have, e.Know)
}

// Hint says what to do.
func (e *NewerDataError) Hint() string {
	return "run the version that wrote it or a later one; to go back for good, restore a backup made before the upgrade"
}

// migrations bring data from the schema of their index to the next. The first schema was 1, and was not written down.
var migrations = []func(l *lead, ctx context.Context) error{
	1: (*lead).enterParts,
}

// migrate brings the stored data to this version's schema, a step at a time. A process that dies on the way does the step
// again.
func (l *lead) migrate(ctx context.Context) error {
	if l.gen.Schema == 0 {
		l.gen.Schema = schema // an empty store is born with it
		if len(l.st.nodes) > 0 {
			l.gen.Schema = 1
		}
	}
	for from := l.gen.Schema; from < schema; from++ {
		if err := migrations[from](l, ctx); err != nil {
			return fmt.Errorf("migrate the store from schema %d: %w", from, err)
		}
		l.gen.Schema = from + 1
		l.log.Info("store migrated", "from", from, "to", from+1)
	}
	t := l.st.begin(l.env(), leaderNow(l.st))
	t.put(keyGeneration, l.gen)
	return l.commit(ctx, t)
}

// enterParts enters the boards of every node in the ledger, which schema 1 did not have.
func (l *lead) enterParts(ctx context.Context) error {
	for _, name := range sortedKeys(l.st.nodes) {
		n := l.st.nodes[name]
		t := l.st.begin(l.env(), leaderNow(l.st))
		t.hardware(lifecycle.Node{Name: name}, n)
		if err := l.commit(ctx, t); err != nil {
			return err
		}
	}
	return nil
}
