package slurm

import (
	"errors"
	"testing"
	"time"
)

// TestFence: each verb that changes something asks the fence first, and starts nothing when it says no.
func TestFence(t *testing.T) {
	deposed := errors.New("another leads")
	for _, verb := range Verbs {
		t.Run(verb, func(t *testing.T) {
			f := newFake()
			f.drain("gpu1", mine, "slurm")
			asked := 0
			c := f.client(func(cfg *Config) { cfg.Fence = func() error { asked++; return deposed } })
			err := doVerb(t, f, c, verb)
			if !errors.Is(err, deposed) || asked != 1 {
				t.Errorf("error %v after %d questions", err, asked)
			}
			wantChanges(t, f)
		})
	}
}

// doVerb does each verb once, on nodes and jobs for which it has something to do.
func doVerb(t *testing.T, f *fake, c *Client, verb string) error {
	t.Helper()
	f.jobs["7"] = &Job{ID: "7", State: "RUNNING", Nodes: []string{"gpu1"}, NumNodes: 1, Requeue: true, User: "ann", Reason: "None"}
	ctx, expect := t.Context(), Expect{Reason: mine}
	switch verb {
	case "drain":
		return c.Drain(ctx, []DrainOrder{{Node: "gpu2", Reason: mine}})[0].Err
	case "reason":
		f.nodes["gpu1"].Reason = ReasonProlog
		return c.SetReason(ctx, "gpu1", mine, nil)
	case "resume":
		return c.Resume(ctx, "gpu1", expect)
	case "reboot":
		return c.Reboot(ctx, "gpu1", time.Now(), expect)
	case "requeue":
		return c.Requeue(ctx, "7", AnyRestarts)
	case "cancel":
		return c.Cancel(ctx, "7", AnyRestarts)
	case "release":
		f.jobs["7"] = &Job{ID: "7", State: "PENDING", Restarts: 1, Reason: "launch failed requeued held", User: "ann"}
		return c.Release(ctx, "7", AnyRestarts)
	}
	t.Fatalf("verb %q has no test", verb)
	return nil
}

// TestEveryChildFails: whichever child of a verb fails, before its work or after it, doing the verb again ends in the same
// state as doing it once, and changes nothing twice.
func TestEveryChildFails(t *testing.T) {
	lost := errors.New("no answer")
	for _, verb := range Verbs {
		for nth := range 4 {
			for _, late := range []bool{false, true} {
				f := newFake()
				f.drain("gpu1", mine, "slurm")
				calls, hit := 0, false
				fail := func() error {
					if hit = calls == nth; hit {
						return lost
					}
					return nil
				}
				f.before = func(int, Command) error {
					if late {
						return nil
					}
					err := fail()
					calls++
					return err
				}
				f.after = func(Command) error {
					if !late {
						return nil
					}
					err := fail()
					calls++
					return err
				}
				err := doVerb(t, f, f.client(nil), verb)
				if calls <= nth {
					continue // it has fewer children
				}
				if !errors.Is(err, lost) {
					t.Errorf("%s, child %d: error %v", verb, nth, err)
				}
				f.before, f.after = nil, nil
				again := func() error {
					switch verb {
					case "drain":
						return f.client(nil).Drain(t.Context(), []DrainOrder{{Node: "gpu2", Reason: mine}})[0].Err
					case "reason":
						return f.client(nil).SetReason(t.Context(), "gpu1", mine, nil)
					case "resume":
						return f.client(nil).Resume(t.Context(), "gpu1", Expect{Reason: mine})
					case "reboot":
						return f.client(nil).Reboot(t.Context(), "gpu1", time.Now(), Expect{Reason: mine})
					case "requeue":
						return f.client(nil).Requeue(t.Context(), "7", 0)
					case "cancel":
						return f.client(nil).Cancel(t.Context(), "7", 0)
					}
					return f.client(nil).Release(t.Context(), "7", 1)
				}
				var changed *ChangedError
				// A second try that finds the work done must say so, or its effect would be ticked off as skipped.
				if err := again(); err != nil && (!errors.As(err, &changed) || !changed.Done) {
					t.Errorf("%s again after child %d: %v", verb, nth, err)
				}
				if len(f.changes) != 1 {
					t.Errorf("%s, child %d late %v: changed %d times: %q", verb, nth, late, len(f.changes), f.changes)
				}
			}
		}
	}
}
