package port

import (
	"cmp"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strike"
)

// counterKinds are the widths of the counters that stop at their end: InfiniBand Architecture Specification, PortCounters,
// as Linux drivers/infiniband/core/sysfs.c shows them. All others are taken to have 64 bits.
var counterKinds = map[string]strike.Kind{
	"link_downed": strike.Saturates8, "link_error_recovery": strike.Saturates8, "symbol_error": strike.Saturates16, "port_rcv_errors": strike.Saturates16,
	"local_link_integrity_errors": strike.Saturates4, "excessive_buffer_overrun_errors": strike.Saturates4,
}

// losses are the counters that rise when a link is lost.
var losses = []string{"link_downed", "carrier_changes"}

// Track fills in what is remembered of the ports of class id (Infiniband or Ethernet), and takes the reading into book and
// learned, by subject. A learned port that sysfs no longer shows comes back as Missing. at is on the boot clock.
func Track(book *strike.Book, learned map[string]Learned, id string, at time.Duration, r Reading, p policy.Ports) Reading {
	if r.Have == checks.Unread {
		return r
	}
	out := r
	out.Ports = nil
	shown, devices, up := map[string]bool{}, map[string]bool{}, 0
	for _, x := range r.Ports {
		key := id + " " + x.Subject().Key()
		shown[key], devices[x.PCI] = true, x.PCI != ""
		if x.Err == "" {
			x.Past = past(book, learned, key, at, x, p)
			if x.Up {
				up++
			}
		}
		out.Ports = append(out.Ports, x)
	}
	for key, l := range learned {
		name, ok := nameOf(id, key, l)
		if !ok || shown[key] {
			continue
		}
		if devices[l.PCI] { // it goes by another name now
			delete(learned, key)
			continue
		}
		x := Port{Name: name, PCI: l.PCI, Missing: true, Past: Past{Learned: &l}}
		x.Past.DownFor = book.Steady(key, "down", at, true, 0)
		out.Ports = append(out.Ports, x)
	}
	slices.SortFunc(out.Ports, func(a, b Port) int { return cmp.Compare(a.Name, b.Name) })
	out.LackFor = book.Last(id, "lack", at, lacks(out.Ports, p), 0)
	out.ShortFor = book.Last(id, "short", at, up < p.Count, 0)
	return out
}

// nameOf takes the port's name back out of a learned key of the class.
func nameOf(id, key string, l Learned) (string, bool) {
	prefix := id + " " + Port{PCI: l.PCI}.Subject().Key() + "/port"
	if len(key) <= len(prefix) || key[:len(prefix)] != prefix {
		return "", false
	}
	return key[len(prefix):], true
}

func past(book *strike.Book, learned map[string]Learned, key string, at time.Duration, x Port, p policy.Ports) Past {
	l, known := learned[key]
	if x.Up && (!known || x.Rate > l.Rate) {
		l, known = Learned{x.PCI, x.Rate}, true
		learned[key] = l
	}
	var out Past
	if known {
		out.Learned = &l
	}
	lost := uint64(0)
	for _, name := range losses {
		lost += x.Counters[name]
	}
	out.DownFor = book.Steady(key, "down", at, !x.Up, lost)
	f := book.Flap(key, "link", at, x.Up, strike.FlapRule{MinDown: p.FlapDown.D(), Window: p.FlapWindow.D(), Count: p.Flaps})
	out.Flaps, out.HeldBy = len(f.Times), f.HeldBy
	for name, limit := range p.Counters {
		raw, have := x.Counters[name]
		if !have {
			continue
		}
		c := Count{Delta: book.Count(key, name, at, raw, limit.Within.D(), counterKinds[name])}
		over := exceeds(c, limit)
		c.Held = book.Strike(key, name, over, limit.Strikes) && !over
		if out.Counters == nil {
			out.Counters = map[string]Count{}
		}
		out.Counters[name] = c
	}
	return out
}
