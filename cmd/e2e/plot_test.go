package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A plot is a site to which, from one and the same beginning, the same things happen again and again.
type plot struct {
	*site
	saved  string // the beginning, on disk
	power  string // log of the power-cycle command
	pages  *pages
	before int // length of slurmctld's log when this run began
}

// newPlot starts a site and takes it to the beginning: all nodes certified, and one case of gpu004 closed after a reboot, so
// that the same fault on it asks for the next rung, a power cycle.
func newPlot(t *testing.T) *plot {
	t.Helper()
	p := &plot{pages: &pages{}}
	p.pages.reset()
	pager := httptest.NewServer(p.pages)
	t.Cleanup(pager.Close)
	dir := t.TempDir()
	p.saved, p.power = filepath.Join(dir, "saved"), filepath.Join(dir, "power.log")
	cycle := filepath.Join(dir, "power-cycle")
	o := byProlog(options{
		policy:  policyOf{more: "  drain_deadline: 2s\n  reboot_deadline: 30s\n  drain_job: requeue\n  drain_gang: kill\n"},
		control: []string{"--slurm-deadline", "1s", "--page-webhook", pager.URL, "--power-cycle", cycle},
	})
	o.policy.more += "  budget: 6s\n  permit_wait: 12s\n" // of the hooks: a prolog asks on while the control plane comes back
	p.site = start(t, o)
	script := fmt.Sprintf("#!/bin/sh\necho \"$1\" >>%s\nexec %s sim reboot --dir \"%s/$1\"\n", p.power, p.Bin("assay-agent"), filepath.Dir(p.Hardware("gpu001")))
	if err := os.WriteFile(cycle, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p.adopt()
	p.fall("gpu004")
	p.await("gpu004 repaired once", func(ns map[string]wire.Node) bool {
		return healthy(ns["gpu004"]) && ns["gpu004"].Certificate.Serial > 8
	})
	if err := p.Save(p.saved); err != nil {
		t.Fatal(err)
	}
	return p
}

// pages is the page webhook: who was paged about, and why.
type pages struct {
	mu   sync.Mutex
	seen map[string]bool // "node reason"
}

func (p *pages) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var body struct{ Node, Reason string }
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		return
	}
	if body.Reason == "hard_faults" {
		body.Node = "" // whichever came last: the page is about the fleet
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[strings.TrimSpace(body.Node+" "+body.Reason)] = true
}

func (p *pages) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = map[string]bool{}
}

func (p *pages) list() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.seen))
}

func (p *plot) fall(node string) {
	p.t.Helper()
	if err := sim.FallOffBus(p.Hardware(node), 3); err != nil {
		p.t.Fatal(err)
	}
}

// begin puts everything back to the beginning and starts all but the control plane.
func (p *plot) begin() {
	p.t.Helper()
	if err := p.Restore(p.saved); err != nil {
		p.t.Fatal(err)
	}
	p.cluster.Run("scancel", "--user=root")
	for _, n := range p.cluster.Nodes {
		if p.cluster.Node(n).Drained() {
			p.cluster.Run("scontrol", "update", "nodename="+n, "state=resume")
		}
	}
	for _, n := range p.cluster.Nodes {
		p.cluster.WaitNode(n, "idle", limit, func(n slurm.Node) bool { return n.State == "IDLE" && len(n.Flags) == 0 })
	}
	_ = os.Remove(p.power) // the first time it is not there
	p.pages.reset()
	p.before = len(p.cluster.SlurmctldLog())
	for _, n := range p.cluster.Nodes {
		if err := p.StartAgent(n); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := p.AwaitAgents(p.ctx(), p.cluster.Nodes...); err != nil {
		p.t.Fatal(err)
	}
}

// play has everything happen, and returns when all of it has come to its end.
func (p *plot) play() outcome {
	p.t.Helper()
	before := map[string]uint64{}
	p.await("a healthy fleet", all(func(n wire.Node) bool {
		if n.Certificate != nil {
			before[n.Name] = n.Certificate.Serial
		}
		return healthy(n)
	}))
	p.cluster.Run("scontrol", "update", "nodename=gpu007", "state=drain", "reason=fan tray swap, Ann")
	again := p.submit("[ -n \"$SLURM_RESTART_COUNT\" ] || sleep 600", "-w", "gpu001", "--exclusive", "--gres=gpu:8")
	gang := p.submit("sleep 600", "-N2", "-w", "gpu[002-003]", "--exclusive", "--gres=gpu:8")
	p.cluster.WaitJob(again, "RUNNING", limit)
	p.cluster.WaitJob(gang, "RUNNING", limit)
	p.await("the jobs seen", func(ns map[string]wire.Node) bool {
		s1, s2 := ns["gpu001"].Slurm, ns["gpu002"].Slurm
		return s1 != nil && s2 != nil && len(s1.Jobs) == 1 && len(s2.Jobs) == 1
	})

	p.fall("gpu001")                                                 // its job is requeued at the drain's deadline; reboot
	if err := sim.XID(p.Hardware("gpu002"), 5, 95, ""); err != nil { // its gang is killed; reset
		p.t.Fatal(err)
	}
	p.fall("gpu004") // power cycle
	p.cluster.Run("scontrol", "update", "nodename=gpu005", "state=drain", "reason="+slurm.ReasonKillTask)
	time.Sleep(1100 * time.Millisecond)                           // the snapshot of the agent's start is too old by then for a prolog
	p.set("gpu008", 2, map[string]string{"remap_failed": "true"}) // its prolog refuses; a person is asked for
	turned := p.submit("true", "-w", "gpu008", "--exclusive", "--gres=gpu:8")

	jobs := map[string]string{again: "COMPLETED", gang: "CANCELLED", turned: "PENDING ReqNodeNotAvail"}
	p.await("the end", func(ns map[string]wire.Node) bool {
		for name, n := range ns {
			switch name {
			case "gpu007":
				if len(n.Holds) != 1 || len(n.Effects) != 0 {
					return false
				}
			case "gpu008":
				if n.State != "quarantined" || len(n.Effects) != 0 || !slices.Contains(p.pages.list(), "gpu008 needs_person") {
					return false
				}
			case "gpu001", "gpu002", "gpu004", "gpu005": // these fall, and a later certificate says that they have
				if !healthy(n) || n.Certificate.Serial <= before[name] || n.Slurm == nil || strings.Contains(n.Slurm.State, slurm.FlagDrain) {
					return false
				}
			default:
				if !healthy(n) || n.Slurm == nil || strings.Contains(n.Slurm.State, slurm.FlagDrain) {
					return false
				}
			}
		}
		for id, want := range jobs {
			if got := p.cluster.Job(id); !strings.HasPrefix(got, want) {
				return false
			}
		}
		return len(ns) == 8
	})
	return p.outcome(map[string]string{"again": again, "gang": gang, "turned": turned})
}

// An outcome is how a run ended, with what differs from run to run by nature taken out.
type outcome struct {
	Nodes map[string][]string
	Jobs  map[string]string
	Pages []string
	Power []string
	Slurm map[string][]string // by node: what slurmctld was told, in order
}

var launchFailure = regexp.MustCompile(`Prolog launch failure, JobId=(\d+)`)

var caseID = regexp.MustCompile(`Q-[A-Z0-9]{4}`)

// told are the lines in which slurmctld logs that it was told to change something, with the node or job it is about.
var told = []struct {
	line *regexp.Regexp
	what string
}{
	{regexp.MustCompile(`update_node: node (\S+) reason set to: (.*)`), "reason "},
	{regexp.MustCompile(`update_node: node (\S+) state set to (\S+)`), "state "},
	{regexp.MustCompile(`reboot request queued for nodes (\S+)()`), "reboot"},
	{regexp.MustCompile(`Requeuing JobId=(\S+)()`), "requeue"},
	{regexp.MustCompile(`REQUEST_KILL_JOB JobId=(\S+)()`), "kill"},
	{regexp.MustCompile(`release hold on JobId=(\S+)()`), "release"},
}

// tellings are what slurmctld's log says that it was told, by node and job, in order. Repeats are left out: an order given
// twice in a row is as good as one. Whether a drained node still has jobs is their affair. A job that the drain's deadline
// requeued before its prolog had failed was never held, and is let go without a release; that it is free, its state says.
func tellings(log string, jobs map[string]string) map[string][]string {
	out := map[string][]string{}
	held := map[string]bool{}
	for line := range strings.Lines(log) {
		if m := launchFailure.FindStringSubmatch(line); m != nil {
			held[m[1]] = true
		}
		for _, t := range told {
			m := t.line.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				continue
			}
			of := m[1]
			for name, id := range jobs {
				if of == id {
					of = "job " + name
				}
			}
			what := strings.ReplaceAll(t.what+caseID.ReplaceAllString(m[2], "Q-"), "DRAINING", "DRAINED")
			if had := out[of]; len(had) == 0 || had[len(had)-1] != what {
				out[of] = append(had, what)
			}
		}
	}
	for name, id := range jobs {
		if of := "job " + name; name == "turned" && !held[id] && slices.Equal(out[of], []string{"requeue"}) {
			out[of] = append(out[of], "release")
		}
	}
	// The two lines of one drain are one order: a drain given twice in a row is a pair repeated.
	for of, lines := range out {
		var once []string
		for i := 0; i < len(lines); i++ {
			if n := len(once); n >= 2 && i+1 < len(lines) && lines[i] == once[n-2] && lines[i+1] == once[n-1] {
				i++
				continue
			}
			once = append(once, lines[i])
		}
		out[of] = once
	}
	return out
}

func (p *plot) outcome(jobs map[string]string) outcome {
	p.t.Helper()
	o := outcome{Nodes: map[string][]string{}, Jobs: map[string]string{}}
	for name, id := range jobs {
		o.Jobs[name] = p.cluster.Job(id)
	}
	ns, err := p.Lab.Nodes(p.ctx())
	if err != nil {
		p.t.Fatal(err)
	}
	for name, n := range ns {
		o.Nodes[name] = p.describe(n)
	}
	o.Pages = p.pages.list()
	b, err := os.ReadFile(p.power)
	if err != nil {
		p.t.Fatal(err)
	}
	o.Power = slices.Compact(strings.Fields(string(b)))
	o.Slurm = tellings(p.cluster.SlurmctldLog()[p.before:], jobs)
	return o
}

// describe is one node's end: as we see it, as Slurm shows it, and its path through the states.
func (p *plot) describe(n wire.Node) []string {
	out := []string{n.State, fmt.Sprint("certificate ", n.Certificate != nil), fmt.Sprint("holds ", len(n.Holds))}
	s := p.cluster.Node(n.Name)
	out = append(out, fmt.Sprint("drained ", s.Drained()))
	if s.Drained() {
		out = append(out, caseID.ReplaceAllString(s.Reason, "Q-"))
	}
	var h []wire.HistoryEntry
	p.await("the history of "+n.Name, func(map[string]wire.Node) bool { // assayd may just be on its way back
		text, err := p.CLI(p.ctx(), "node", "history", n.Name, "-o", "json")
		return err == nil && json.Unmarshal([]byte(text), &h) == nil
	})
	for _, h := range h {
		if h.From != h.To && h.From != "" {
			out = append(out, h.To)
		}
	}
	return out
}
