package worker

import (
	"fmt"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/cuda"
)

// warmCopies are made before any is timed: a link that has rested runs slowly at first. On PCIe Gen 5 x16 those of the full
// size take 30 ms.
const warmCopies = 50

// rates measures every direction, while no other GPU of the node copies. Where that cannot be had there is no figure.
func (c *copier) rates() error {
	release, err := c.t.turn.alone()
	if err != nil {
		c.s.Copy.NoRate = err.Error()
		return nil
	}
	defer release()
	for _, group := range c.groups {
		if err := c.rate(group); err != nil {
			return err
		}
	}
	if p := c.groups[0][0]; p.direction == golden.HostToDevice || p.direction == golden.DeviceToHost {
		c.s.Copy.Link = readLink(c.t.sysfs, c.t.gpu.PCI)
	}
	return nil
}

// rate times copies of the whole buffer: those of a group's pairs side by side, each on its own stream.
func (c *copier) rate(group []pair) error {
	if err := c.t.stopped(); err != nil {
		return fmt.Errorf("stopped: %w", err)
	}
	n := c.t.size.CopyBytes()
	events := make([][]*cuda.Event, len(group))
	defer func() {
		for _, es := range events {
			for _, e := range es {
				_ = e.Free() // with the context at the latest
			}
		}
	}()
	for i := range group {
		for range golden.CopySamples + 1 {
			e, err := c.t.dev.Event()
			if err != nil {
				return err
			}
			events[i] = append(events[i], e)
		}
	}
	for k := range warmCopies + golden.CopySamples + 1 {
		for i, p := range group {
			if at := k - warmCopies; at >= 0 {
				if err := events[i][at].Record(p.stream); err != nil {
					return err
				}
			}
			if k == warmCopies+golden.CopySamples {
				continue // the last event ends the last copy
			}
			if err := p.move(0, n); err != nil {
				return err
			}
		}
	}
	for _, p := range group {
		if err := p.stream.Sync(); err != nil {
			return err
		}
	}
	for i, p := range group {
		var seconds []float64
		for k := range golden.CopySamples {
			s, err := events[i][k+1].Since(events[i][k])
			if err != nil {
				return err
			}
			seconds = append(seconds, s)
		}
		if r := golden.RateOf(p.direction, len(group) > 1, n, seconds); r != nil {
			c.s.Copy.Rates = append(c.s.Copy.Rates, *r)
		} else {
			c.s.Copy.NoRate = "the events of a copy have no time between them"
		}
	}
	return nil
}
