package nvlink

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the check's catalog id.
const ID = "nvlink"

// A GPU is one GPU of a node with its links.
type GPU struct {
	checks.GPU
	Reading
}

// Judge turns the links of a node's GPUs into findings, one a GPU. It does no I/O.
//
// A link that was active in this boot is asked back by a GPU reset; one that never trained by a reboot (gpud #1271: links
// that fail at init come back with it, or not at all). None of the faults is hard: the driver says so itself where a link
// takes the GPU with it.
func Judge(node []GPU, p policy.NVLink) []checks.Finding {
	var fs []checks.Finding
	for i := range node {
		fs = append(fs, judge(node, i, p))
	}
	return fs
}

func judge(node []GPU, i int, p policy.NVLink) checks.Finding {
	g := node[i]
	f := checks.Finding{Check: ID, Subject: g.Subject()}
	switch {
	case g.Have == checks.NotSupported, g.Have == checks.Read && len(g.Links) == 0:
		f.Verdict, f.Reason = checks.NotApplicable, "this GPU has no NVLink"
		if g.Err != "" {
			f.Reason = g.Err
		}
		return f
	case g.Have != checks.Read:
		f.Reason = "NVLinks not read"
		if g.Err != "" {
			f.Reason += ": " + g.Err
		}
		return f
	}
	j := judgement{gpu: g, peers: peersOf(node, i), policy: p, f: &f}
	f.Evidence = evidence(g.Reading)
	j.states()
	j.quality()
	j.conclude()
	return f
}

// peersOf gives the other GPUs of the node that can be compared with GPU i: the same product, with links that were read.
func peersOf(node []GPU, i int) []GPU {
	var out []GPU
	for k, o := range node {
		if k != i && o.Have == checks.Read && o.Name == node[i].Name && len(o.Links) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// active counts links that are up.
func (r Reading) active() (n int) {
	for _, l := range r.Links {
		if l.Have == checks.Read && l.State.up() {
			n++
		}
	}
	return n
}

// onBaseboard reports whether a product is one whose links are wired on the board it sits on, by its name in NVML. Other
// boards have links only where somebody fitted a bridge.
func onBaseboard(name string) bool {
	if strings.Contains(name, "NVL") || strings.Contains(strings.ToLower(name), "pcie") {
		return false
	}
	for _, s := range []string{"SXM", "HBM3", "H200", "H20", "B200", "B300"} {
		if strings.Contains(name, s) {
			return true
		}
	}
	return false
}

// unreadWords name what was not read of a link that is up: its counters, in the order of Counters, and its bit error rate.
var unreadWords = [...]string{"replay counter", "recovery counter", "CRC counter", "bit error rate"}

// A judgement collects what is to be said of one GPU.
type judgement struct {
	gpu    GPU
	peers  []GPU
	policy policy.NVLink
	f      *checks.Finding

	broken, watch, unread []string
	action                checks.Action
	idle                  string      // why no link being active is no fault
	untold                [4][]string // links of which a counter was not read, by its place in unreadWords
}

func (j *judgement) fault(a checks.Action, format string, args ...any) {
	j.action = max(j.action, a)
	j.broken = append(j.broken, fmt.Sprintf(format, args...))
}

func (j *judgement) watched(format string, args ...any) {
	j.watch = append(j.watch, fmt.Sprintf(format, args...))
}

// states compares each link that is inactive with its past, its peers and policy.
func (j *judgement) states() {
	active := j.gpu.active()
	linked := 0 // peers with any link up
	for _, p := range j.peers {
		if p.active() > 0 {
			linked++
		}
	}
	comparable := active > 0 || onBaseboard(j.gpu.Name)
	var lost, missing, disabled []string
	for i, l := range j.gpu.Links {
		switch {
		case l.Have == checks.NotSupported:
		case l.Have != checks.Read:
			j.unread = append(j.unread, fmt.Sprint(i))
		case l.State == TrafficDisabled:
			disabled = append(disabled, fmt.Sprint(i))
		case l.State.up():
		case l.Seen:
			lost = append(lost, j.name(i))
		case comparable && 2*j.withLink(i) > linked:
			missing = append(missing, j.name(i))
		}
	}
	if len(lost) > 0 {
		j.fault(checks.ResetGPU, "link %s inactive, active earlier in this boot", strings.Join(lost, ", "))
	}
	if len(missing) > 0 {
		j.fault(checks.Reboot, "link %s inactive, active on most of %d peers", strings.Join(missing, ", "), linked)
	}
	if len(disabled) > 0 {
		j.watched("link %s trained but without traffic", strings.Join(disabled, ", "))
	}
	switch {
	case len(j.broken) > 0 || len(j.unread) > 0:
	case active == 0 && linked == 0 && len(j.peers) > 0 && onBaseboard(j.gpu.Name):
		j.fault(checks.FixConfig, "all links of all GPUs inactive: look at the fabric manager and the driver first")
	case active < j.policy.Links:
		j.fault(checks.Reboot, "%d links active, %d expected by policy", active, j.policy.Links)
	case active > 0:
	case len(j.peers) == 0:
		j.idle = "no link active, and no peer to compare with"
	default:
		j.idle = "no link active: no bridge is fitted"
	}
}

// withLink counts peers on which link i is up.
func (j *judgement) withLink(i int) (n int) {
	for _, p := range j.peers {
		if i < len(p.Links) && p.Links[i].Have == checks.Read && p.Links[i].State.up() {
			n++
		}
	}
	return n
}

// name names a link, and where it leads if that is known.
func (j *judgement) name(i int) string {
	if r := j.gpu.Links[i].Remote; r != "" {
		return fmt.Sprintf("%d (to %s)", i, r)
	}
	return fmt.Sprint(i)
}

// quality judges the links that are up: by how much their counters rose, and how fast they are beside the fastest.
func (j *judgement) quality() {
	fastest := 0
	for _, g := range append([]GPU{j.gpu}, j.peers...) {
		for _, l := range g.Links {
			fastest = max(fastest, l.SpeedMBps)
		}
	}
	over := j.gpu.Over
	for i, l := range j.gpu.Links {
		if l.Have != checks.Read || !l.State.up() {
			continue
		}
		crc, _ := l.CRC.Rise()
		replays, _ := l.Replay.Rise()
		recoveries, _ := l.Recovery.Rise()
		if perSecond := counter.Rate(crc, over, time.Second); perSecond > j.policy.MaxCRCPerSecond {
			j.fault(checks.Drain, "link %s: %.1f CRC errors a second, more than %g", j.name(i), perSecond, j.policy.MaxCRCPerSecond)
		} else if crc > 0 {
			j.watched("link %s: %d CRC errors in %s", j.name(i), crc, over.Round(time.Second))
		}
		if perMinute := counter.Rate(replays+recoveries, over, time.Minute); perMinute > j.policy.MaxRetriesPerMinute {
			j.fault(checks.Drain, "link %s: %.1f replays and recoveries a minute, more than %g", j.name(i), perMinute, j.policy.MaxRetriesPerMinute)
		} else if replays+recoveries > 0 {
			j.watched("link %s: %d replays and %d recoveries in %s", j.name(i), replays, recoveries, over.Round(time.Second))
		}
		if ber := l.Effective.Value(); ber > j.policy.MaxEffectiveBER {
			j.fault(checks.Drain, "link %s: bit error rate %g after correction, above %g", j.name(i), ber, j.policy.MaxEffectiveBER)
		}
		for k, c := range l.Counters() {
			switch {
			case c.Saturated():
				j.watched("link %s: %s counter saturated at %d", j.name(i), c.What, c.Now)
			case c.Have == checks.Unread && !l.InTurn:
				j.untold[k] = append(j.untold[k], fmt.Sprint(i))
			}
		}
		if l.Effective.Have == checks.Unread {
			j.untold[len(unreadWords)-1] = append(j.untold[len(unreadWords)-1], fmt.Sprint(i))
		}
		if l.SpeedMBps > 0 && l.SpeedMBps < fastest {
			j.watched("link %s runs at %d MB/s, others at %d", j.name(i), l.SpeedMBps, fastest)
		}
	}
	if len(j.unread) > 0 {
		j.unread = []string{fmt.Sprintf("link %s not read", strings.Join(j.unread, ", "))}
	}
	for k, links := range j.untold {
		if len(links) > 0 {
			j.unread = append(j.unread, fmt.Sprintf("%s of link %s not read", unreadWords[k], strings.Join(links, ", ")))
		}
	}
}

func (j *judgement) conclude() {
	f := j.f
	switch {
	case len(j.broken) > 0:
		f.Verdict, f.Action, f.Reason = checks.Fail, j.action, strings.Join(j.broken, "; ")
	case len(j.unread) > 0:
		f.Reason = strings.Join(append(j.unread, j.watch...), "; ")
		if len(j.watch) > 0 {
			f.Action = checks.Watch
		}
	case j.idle != "":
		f.Verdict, f.Reason = checks.NotApplicable, j.idle
	case len(j.watch) > 0:
		f.Verdict, f.Action, f.Reason = checks.Pass, checks.Watch, strings.Join(j.watch, "; ")
	default:
		f.Verdict, f.Reason = checks.Pass, fmt.Sprintf("%d of %d links active", j.gpu.active(), len(j.gpu.Links))
		if _, have := j.gpu.Errors(); have == checks.NotSupported {
			f.Reason += "; this driver does not tell what they count"
		}
	}
}

// evidence is what was read, briefly: the links that are not active and the counters that are not zero.
func evidence(r Reading) string {
	var b strings.Builder
	fmt.Fprintf(&b, "links=%d active=%d over=%s", len(r.Links), r.active(), r.Over.Round(time.Second))
	for i, l := range r.Links {
		switch {
		case l.Have != checks.Read:
			fmt.Fprintf(&b, " %d:%s", i, l.Have)
			continue
		case l.State != Active:
			fmt.Fprintf(&b, " %d:state=%d", i, l.State)
		}
		for _, c := range l.Counters() {
			if c.Have == checks.Read && c.Now > 0 {
				fmt.Fprintf(&b, " %d:%s=%d", i, strings.ToLower(c.What), c.Now)
				if by, why := c.Rise(); why == "" {
					fmt.Fprintf(&b, "(+%d)", by)
				}
			}
		}
		if l.Effective.Have == checks.Read && l.Effective.Value() > 0 {
			fmt.Fprintf(&b, " %d:ber=%g", i, l.Effective.Value())
		}
	}
	return b.String()
}

// Up counts the links that are up; known is false when any was not read.
func (r Reading) Up() (n int, known bool) {
	if r.Have != checks.Read {
		return 0, false
	}
	for _, l := range r.Links {
		if l.Have == checks.Unread {
			return 0, false
		}
	}
	return r.active(), true
}
