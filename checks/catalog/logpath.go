package catalog

import (
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/policy"
)

// path takes in one line on a PCIe error. The lines of one error follow each other: that there was one, what it was, the
// names of its bits, and what the drivers below make of it. They give one finding.
func (l *Log) path(out []checks.Finding, ev aer.Event, at time.Time, byPCI map[string]checks.GPU, p policy.Policy) []checks.Finding {
	if !runs(p, aer.ID) {
		return out
	}
	open := l.port.device != "" && near(at, l.port.at)
	mine := func() *checks.Finding {
		if open && l.port.found >= 0 && l.port.found < len(out) {
			return &out[l.port.found]
		}
		return nil
	}
	switch ev.Kind {
	case aer.Bit:
		if f := mine(); f != nil && l.port.device == ev.Device && len(f.Reason) < 300 {
			f.Reason += "; " + ev.Bit
		}
		return out
	case aer.Unrecovered:
		if open {
			if f := mine(); f != nil && !strings.Contains(f.Reason, aer.NotRecovered) {
				f.Reason += "; " + aer.NotRecovered
			}
			return out
		}
	case aer.Below:
		if ev.Driver != "nvidia" || !open {
			return out
		}
		gpu := l.gpu(ev, byPCI)
		keep(l.below, l.port.device, gpu)
		if f := mine(); f != nil && f.Subject.Kind == checks.KindNode {
			f.Subject = checks.Subject{Kind: checks.KindGPU, Node: f.Subject.Node, PCI: gpu}
			f.Reason += "; above GPU " + gpu
		}
		return out
	}
	gpu := l.gpu(ev, byPCI)
	f := aer.Judge(ev, gpu, 0, p.AER)
	key := rateKey{f.Subject.Key(), ev.Severity}
	announced := open && l.port.received && ev.Kind == aer.Found && (ev.Severity == l.port.severity || ev.Severity == aer.Unsaid)
	count := l.port.count
	if !announced || key != l.port.key {
		count = l.rate(key).Add(at, p.AER)
	}
	f = aer.Judge(ev, gpu, count, p.AER)
	old, at0 := mine(), l.port.found
	l.port = pendingError{sighted: sighted{ev.Device, at}, severity: ev.Severity, received: ev.Kind == aer.Received, found: -1, key: key, count: count}
	switch {
	case announced && old != nil:
		l.port.found = at0
		f.Subject.Node, f.BootID, f.At = old.Subject.Node, old.BootID, old.At
		*old = f
	case announced:
		// What announced it was handed out before; it stands for both.
	default:
		l.port.found = len(out)
		out = append(out, f)
	}
	return out
}

// gpu gives the GPU on whose path an error is.
func (l *Log) gpu(ev aer.Event, byPCI map[string]checks.GPU) string {
	t := l.Tree
	t.GPUs = slices.Clone(t.GPUs)
	for pci := range byPCI {
		t.GPUs = append(t.GPUs, pci)
	}
	for pci := range l.uuids {
		t.GPUs = append(t.GPUs, pci)
	}
	slices.Sort(t.GPUs)
	t.GPUs = slices.Compact(t.GPUs)
	if g := t.GPU(ev); g != "" {
		return g
	}
	return l.below[ev.Device]
}

func (l *Log) rate(k rateKey) *aer.Rate {
	r := l.rates[k]
	if r == nil {
		r = &aer.Rate{}
		keep(l.rates, k, r)
	}
	return r
}
