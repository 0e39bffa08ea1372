package port

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// Judge gives a finding for each port of class id (Infiniband or Ethernet), or one for the node when it shows none or fewer
// than it should. It does no I/O.
func Judge(id string, r Reading, p policy.Ports) []checks.Finding {
	switch r.Have {
	case checks.NotSupported, checks.Read:
	default:
		if r.HungFor >= p.Drop.D() {
			return []checks.Finding{node(id, checks.Fail, checks.Drain, "the driver of the ports has not answered for %s", r.HungFor.Round(time.Second))}
		}
		return []checks.Finding{node(id, checks.Unknown, checks.None, "ports not read%s", because(r.Err))}
	}
	var out []checks.Finding
	told, up := 0, 0 // ports whose trouble is told; ports that are up
	for _, x := range r.Ports {
		f := judge(id, x, p)
		out = append(out, f)
		if x.Up {
			up++
		} else if f.Verdict == checks.Fail || f.Verdict == checks.Unknown {
			told++
		}
	}
	for _, names := range slices.Sorted(maps.Keys(p.Require)) {
		if f, wrong := required(id, names, out, r, p); wrong {
			out = append(out, f)
		}
	}
	switch {
	case up+told < p.Count:
		out = append(out, short(id, r, p, up))
	case len(out) == 0:
		out = append(out, node(id, checks.NotApplicable, checks.None, "the node shows no such port"))
	}
	return out
}

// short says that fewer ports are up than policy wants.
func short(id string, r Reading, p policy.Ports, up int) checks.Finding {
	reason := fmt.Sprintf("%d ports up, policy wants %d", up, p.Count)
	if r.ShortFor >= p.Drop.D() {
		return node(id, checks.Fail, checks.Drain, "%s; so for %s", reason, r.ShortFor.Round(time.Second))
	}
	return node(id, checks.Unknown, checks.Watch, "%s; a fault after %s", reason, p.Drop)
}

func node(id string, v checks.Verdict, a checks.Action, format string, args ...any) checks.Finding {
	return checks.Finding{Check: id, Subject: checks.Subject{Kind: checks.KindNode}, Verdict: v, Action: a, Reason: fmt.Sprintf(format, args...)}
}

func because(err string) string {
	if err == "" {
		return ""
	}
	return ": " + err
}

func judge(id string, x Port, p policy.Ports) checks.Finding {
	f := checks.Finding{Check: id, Subject: x.Subject()}
	if x.Err != "" {
		f.Reason = "port not read: " + x.Err
		return f
	}
	f.Evidence = evidence(x)
	switch {
	case x.Missing:
		return down(f, x, p, "the kernel shows the port no more", checks.Drain)
	case x.Past.Learned == nil && !x.Up:
		f.Verdict, f.Reason = checks.NotApplicable, "never up on this node: "+x.State
	case x.Disabled:
		return down(f, x, p, "switched off", checks.FixConfig)
	case !x.Up:
		return down(f, x, p, "down ("+x.State+")", checks.Drain)
	default:
		f.Verdict, f.Action, f.Reason = upFaults(x, p)
	}
	return f
}

// down judges a port that should be up. Until it has been down long enough, whether it comes back is open.
func down(f checks.Finding, x Port, p policy.Ports, what string, a checks.Action) checks.Finding {
	lasted := x.Past.DownFor.Round(time.Second)
	switch {
	case x.Past.HeldBy > 0:
		f.Verdict, f.Action, f.Reason = checks.Fail, a, fmt.Sprintf("%s after %s", what, flapped(x.Past, p))
	case x.Past.DownFor >= p.Drop.D():
		f.Verdict, f.Action, f.Reason = checks.Fail, a, fmt.Sprintf("%s for %s", what, lasted)
	default:
		f.Action, f.Reason = checks.Watch, fmt.Sprintf("%s for %s; a fault after %s", what, lasted, p.Drop)
	}
	return f
}

func flapped(past Past, p policy.Ports) string {
	return fmt.Sprintf("%d times down and up again within %s", past.HeldBy, p.FlapWindow)
}

// upFaults judges a port that is up.
func upFaults(x Port, p policy.Ports) (checks.Verdict, checks.Action, string) {
	var faults, watch []string
	if x.Past.HeldBy > 0 {
		faults = append(faults, flapped(x.Past, p))
	}
	want := p.Rate
	if want == 0 && x.Past.Learned != nil {
		want = x.Past.Learned.Rate
	}
	if x.Rate > 0 && x.Rate < want {
		faults = append(faults, fmt.Sprintf("%d Gb/s, should be %d", x.Rate, want))
	}
	for _, name := range slices.Sorted(maps.Keys(x.Past.Counters)) {
		limit, known := p.Counters[name]
		if !known {
			continue // policy has changed since the reading
		}
		text, fault := counter(name, x.Past.Counters[name], limit)
		switch {
		case text == "":
		case fault:
			faults = append(faults, text)
		default:
			watch = append(watch, text)
		}
	}
	switch {
	case len(faults) > 0:
		return checks.Fail, checks.Drain, strings.Join(append(faults, watch...), "; ")
	case x.Rate == 0 && want > 0:
		return checks.Unknown, checks.None, strings.Join(append([]string{fmt.Sprintf("up; how fast was not read, should be %d Gb/s", want)}, watch...), "; ")
	case len(x.Unread) > 0:
		return checks.Unknown, checks.None, strings.Join(append([]string{"up; not read: " + strings.Join(x.Unread, ", ")}, watch...), "; ")
	case len(watch) > 0:
		return checks.Pass, checks.Watch, strings.Join(watch, "; ")
	case x.Rate == 0:
		return checks.Pass, checks.None, "up"
	}
	return checks.Pass, checks.None, fmt.Sprintf("up at %d Gb/s", x.Rate)
}

// counter says what is wrong with a counter's rise, nothing when all is well, and whether it is a fault or to be watched.
func counter(name string, c Count, limit policy.Limit) (text string, fault bool) {
	switch {
	case exceeds(c, limit):
		text = fmt.Sprintf("%s rose by %d within %s", name, c.Rise, limit.Within)
	case c.Held:
		text = fmt.Sprintf("%s rose too far earlier in this boot", name)
	case c.Stuck:
		return name + " stands at its greatest value and can show no more", false
	default:
		return "", false
	}
	return text, limit.Action != checks.Watch.String()
}

// exceeds reports whether a counter rose further than it may. A window that has not been looked at whole proves nothing.
func exceeds(c Count, limit policy.Limit) bool { return c.Full && c.Rise > limit.Max }

// evidence is the port's state in one line.
func evidence(x Port) string {
	s := fmt.Sprintf("state=%q rate=%d flaps=%d", x.State, x.Rate, x.Past.Flaps)
	if x.Width != "" {
		s += fmt.Sprintf(" width=%q", x.Width)
	}
	for _, name := range slices.Sorted(maps.Keys(x.Counters)) {
		s += fmt.Sprintf(" %s=%d", name, x.Counters[name])
	}
	return s
}
