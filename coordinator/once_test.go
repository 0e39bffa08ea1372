package coordinator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A write under a key is done once: sent again to the same leader or to the next, it changes nothing more. Another request,
// and another person's, are others.
func TestAWriteUnderAKeyIsDoneOnce(t *testing.T) {
	p := newPlant("gpu001")
	s := startSite(t, p, "/once/", nil)
	s.certify("gpu001")
	note := func(s *site, ctx context.Context) error {
		_, err := s.coord.Freeze(ctx, "alice", "look")
		return err
	}
	frozen := func(s *site) (n int) {
		t.Helper()
		es, err := s.coord.Last(context.Background(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			if e.By == "alice" {
				n++
			}
		}
		return n
	}
	key := func(by, key, what string) context.Context { return api.WithOnce(t.Context(), by, key, what) }
	first := key("alice", "k1", "freeze")
	if err := note(s, first); err != nil {
		t.Fatal(err)
	}
	if _, again := api.Repeated(first); again {
		t.Error("the first time counts as repeated")
	}
	second := key("alice", "k1", "freeze")
	if err := note(s, second); err != nil {
		t.Fatal(err)
	}
	if _, again := api.Repeated(second); !again || frozen(s) != 1 {
		t.Errorf("repeated %v, done %d times", again, frozen(s))
	}
	var reused reusedError
	if err := note(s, key("alice", "k1", "freeze another")); !errors.As(err, &reused) || reused.Status() != 422 || frozen(s) != 1 {
		t.Errorf("another request under the key: %v, done %d times", err, frozen(s))
	}
	if err := note(s, key("bob", "k1", "freeze")); err != nil || frozen(s) != 2 {
		t.Errorf("another person's key: %v, done %d times", err, frozen(s))
	}

	s.stop()
	next := startSite(t, p, "/once/", nil)
	next.try("again", func(ctx context.Context) error {
		ctx = api.WithOnce(ctx, "alice", "k1", "freeze")
		if err := note(next, ctx); err != nil {
			return err
		}
		if _, again := api.Repeated(ctx); !again || frozen(next) != 2 {
			return fmt.Errorf("after a change of leaders: repeated %v, done %d times", again, frozen(next))
		}
		return nil
	})
}

// A drill that is asked for twice under one key is one drill, and both are answered with it.
func TestADrillUnderAKeyIsOne(t *testing.T) {
	s := startSite(t, newPlant("gpu001"), "/oncedrill/", nil)
	s.certify("gpu001")
	var ids []string
	for range 2 {
		d, err := s.coord.StartDrill(api.WithOnce(t.Context(), "alice", "k", "drill"), "alice", wire.DrillAsk{Node: "gpu001"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.ID)
	}
	if ids[0] != ids[1] {
		t.Errorf("drills %v", ids)
	}
}

// A write that is refused leaves its key free; keys end after a day, and there are never more than are kept.
func TestKeysAreBounded(t *testing.T) {
	s := newState()
	for i := range oncesMost {
		s.onces[fmt.Sprint(i)] = once{Sum: "s", At: noon.Add(time.Duration(i) * time.Second)}
	}
	x := s.begin(drillEnv(), noon.Add(2*time.Hour))
	x.keepOnce("new", once{Sum: "s", At: x.now})
	if x.empty() || x.size() < 2 {
		t.Error("a key alone is no transaction")
	}
	x.publish(1)
	if _, oldest := s.onces["0"]; oldest || len(s.onces) != oncesMost {
		t.Errorf("%d keys, the oldest among them: %v", len(s.onces), oldest)
	}
	if old := oldOnces(s.onces, noon.Add(oncesFor-time.Second)); len(old) != 0 {
		t.Errorf("%v are old", old)
	}
	if old := oldOnces(s.onces, noon.Add(48*time.Hour)); len(old) != releasesAtOnce {
		t.Errorf("%d are old, want %d at a time", len(old), releasesAtOnce)
	}
}
