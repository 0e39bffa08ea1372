package port

import (
	"path"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// named reports whether a pattern of policy's names the port, or its device.
func named(pattern string, x Port) bool {
	whole, _ := path.Match(pattern, x.Name)
	device, _, _ := strings.Cut(x.Name, "/")
	of, _ := path.Match(pattern, device)
	return whole || of
}

// lacks reports whether, of some ports of which policy requires one, none is up.
func lacks(ports []Port, p policy.Ports) bool {
	for names := range p.Require {
		up := false
		for _, x := range ports {
			up = up || x.Up && named(names, x)
		}
		if !up {
			return true
		}
	}
	return false
}

// required says what is wrong with the ports that a pattern names, of which one must be up at a rate; false when nothing is, or
// when a port's own finding says all there is to say. of are the findings of r's ports, in order.
//
// A port that is down hides slow ones only while it may yet come back and be the one that is fast enough.
func required(id, names string, of []checks.Finding, r Reading, p policy.Ports) (checks.Finding, bool) {
	want, best, up, unsaid, told, open := p.Require[names], 0, false, false, false, false
	for i, x := range r.Ports {
		switch {
		case !named(names, x):
		case x.Up && x.Rate >= want:
			return checks.Finding{}, false
		case x.Up:
			up, unsaid, best = true, unsaid || x.Rate == 0, max(best, x.Rate)
		case of[i].Verdict == checks.Fail:
			told = true
		case of[i].Verdict == checks.Unknown:
			told, open = true, open || mayReach(x, want)
		}
	}
	switch {
	case open, told && !up:
		return checks.Finding{}, false
	case unsaid:
		return node(id, checks.Unknown, checks.None, "%s: the kernel does not say how fast, policy requires %d Gb/s", names, want), true
	case up:
		return node(id, checks.Fail, checks.Drain, "%s: %d Gb/s, policy requires %d", names, best, want), true
	case r.LackFor >= p.Drop.D():
		return node(id, checks.Fail, checks.Drain, "%s: no such port is up, policy requires one; so for %s", names, r.LackFor.Round(time.Second)), true
	}
	return node(id, checks.Unknown, checks.Watch, "%s: no such port is up, policy requires one; a fault after %s", names, p.Drop), true
}

// mayReach reports whether a port that is not up may be up at a rate again: nothing says that it was slower before.
func mayReach(x Port, rate int) bool {
	return x.Past.Learned == nil || x.Past.Learned.Rate == 0 || x.Past.Learned.Rate >= rate
}
