package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Run plays the scenario's timed events for the node in dir, counted from now, and returns when all have happened or ctx
// ends. An event that cannot be played ends it with an error.
func Run(ctx context.Context, dir string) error {
	s, err := Read(dir)
	if err != nil {
		return err
	}
	events := slices.SortedStableFunc(slices.Values(s.Events), func(a, b Event) int { return cmp.Compare(a.After, b.After) })
	start := time.Now()
	for _, ev := range events {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(start.Add(ev.After))):
		}
		if err := ev.play(dir); err != nil {
			return fmt.Errorf("event of node %s after %s: %w", s.Node, ev.After, err)
		}
	}
	return nil
}

func (ev Event) play(dir string) error {
	if ev.Set != nil {
		err := change(dir, func(s *State) error {
			g, err := s.gpu(ev.Set.GPU)
			if err != nil {
				return err
			}
			return g.apply(ev.Set.GPUChange, time.Now())
		})
		if err != nil {
			return err
		}
	}
	if ev.Host != nil {
		if err := ChangeHost(dir, *ev.Host); err != nil {
			return err
		}
	}
	if ev.FallOffBus != nil {
		if err := FallOffBus(dir, *ev.FallOffBus); err != nil {
			return err
		}
	}
	if ev.XID != nil {
		if err := XID(dir, ev.XID.GPU, ev.XID.Code, ev.XID.Text); err != nil {
			return err
		}
	}
	if ev.Kmsg != "" {
		if err := Kmsg(dir, ev.Kmsg, KmsgOptions{}); err != nil {
			return err
		}
	}
	if ev.Reset != nil {
		if err := Reset(dir, *ev.Reset); err != nil {
			return err
		}
	}
	if ev.Reboot {
		return Reboot(dir)
	}
	return nil
}
