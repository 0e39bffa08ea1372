package e2e

import (
	"encoding/json"
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

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// (j) A policy that would fail all eight nodes drains at most the default budget, pages once, and no hook exits 1 without a
// permit.
func TestBadThresholdMeetsTheGuard(t *testing.T) {
	const few = "ecc:\n  max_volatile_corrected: 500\n" // 50 million is the default; every node has counted a thousand
	for _, tt := range []struct {
		name    string
		prologs bool // the prologs of one job find it, all at once, before any background cycle does
		back    int  // nodes held back, at least
		refused int  // prologs that exit 1
	}{
		{"found by the agents", false, 7, 0},
		{"found by prologs", true, 6, 1}, // the job has seven nodes
	} {
		t.Run(tt.name, func(t *testing.T) {
			pages := new(pager)
			hooks := httptest.NewServer(pages)
			defer hooks.Close()
			o := options{policy: policyOf{guard: "  storm_nodes: 3\n"}, control: []string{"--page-webhook", hooks.URL}} // which is the default
			if tt.prologs {
				o = byProlog(o)
			}
			s := start(t, o)
			for _, n := range s.cluster.Nodes {
				s.set(n, 1, map[string]string{"volatile_corrected": "1000"})
			}
			s.adopt()
			certs := s.nodes()

			o.policy.more += few
			file := filepath.Join(s.dir, "few.yaml")
			if err := os.WriteFile(file, []byte(o.policy.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := s.CLI(s.ctx(), "policy", "apply", file); err != nil {
				t.Fatal(err)
			}
			if p := s.policy(); p.Guard != policy.Default().Guard || p.ECC.MaxVolatileCorrected != 500 || p.Mode != policy.Act {
				t.Fatalf("policy in force: %+v", p)
			}
			if tt.prologs {
				time.Sleep(1100 * time.Millisecond) // the snapshots of adoption's prologs are too old by then
			} else {
				// No job meets the one taken while its drain is on the way: it is out and, after a reset, back.
				s.await("seven nodes held back, and one back in service", func(ns map[string]wire.Node) bool {
					well := 0
					for _, n := range ns {
						if healthy(n) {
							well++
						}
					}
					return well == 1 && heldBack(tt.back)(ns)
				})
			}
			// Seven nodes are enough for it, so it can run whichever one is taken.
			job := s.submit("sleep 1", "-N7", "--exclusive", "--gres=gpu:8")
			s.cluster.WaitJob(job, "COMPLETED", time.Minute)
			s.await("nodes held back", heldBack(tt.back))
			time.Sleep(2 * time.Second) // four reads of Slurm and two cycles: what would go on does

			// At most the default budget: max(1, 2 % of 8) an hour. The one taken may be back: a reset clears what it counted.
			var taken []string
			for name, n := range s.nodes() {
				var drains []string
				for _, u := range s.updates(name) {
					if strings.Contains(u, "reason set to") {
						drains = append(drains, u)
					}
				}
				if len(drains) > 0 {
					taken = append(taken, name)
					if len(drains) > 1 || !strings.Contains(drains[0], "reason set to: assay:Q-") || !strings.Contains(drains[0], " ecc GPU 1 ") {
						t.Errorf("%s: %v; want one drain, for ecc on GPU 1", name, drains)
					}
					continue
				}
				if got := s.cluster.Node(name); got.Drained() || len(s.updates(name)) > 0 {
					t.Errorf("%s is %s, reason %q, updates %v", name, slurm.StateText(got), got.Reason, s.updates(name))
				}
				if n.State != "certified" || n.Suspended || n.Certificate == nil || n.Certificate.Serial != certs[name].Certificate.Serial {
					t.Errorf("%s is %s with %+v; it is held back, so nothing else of it may change", name, n.State, n.Certificate)
				}
			}
			if len(taken) != 1 {
				t.Fatalf("drained: %v; the default budget is one of eight an hour", taken)
			}

			// No hook exits 1 without a permit, and permits are within the budget too.
			refused, passed := 0, 0
			for _, name := range s.cluster.Nodes {
				if n := s.hookCount(name, "prolog", "refused_hard"); n != 0 {
					t.Errorf("%d prologs on %s exited 1 without a permit", n, name)
				}
				n := s.hookCount(name, "prolog", "refused")
				if n > 0 && !slices.Contains(taken, name) {
					t.Errorf("%d prologs on %s exited 1, which is not drained", n, name)
				}
				refused += n
				passed += s.hookCount(name, "prolog", "held_back")
			}
			if refused != tt.refused || passed < 6 {
				t.Errorf("%d prologs exited 1 and %d passed though they found a fault; want %d, and 6 or more", refused, passed, tt.refused)
			}
			log := s.cluster.SlurmctldLog()
			if n := strings.Count(log, "Prolog launch failure"); n != refused || strings.Contains(log, "Prolog error") {
				t.Errorf("slurmctld heard of %d failed prologs, want %d:\n%s", n, refused, log)
			}

			if got := pages.reasons(); !slices.Equal(got, []string{"storm"}) {
				t.Errorf("pages %v, want one, of a storm", got)
			}
			g := s.guard()
			if len(g.Storms) != 1 || !strings.HasPrefix(g.Storms[0], "ecc on ") || len(g.HeldBack) < tt.back || slices.Contains(g.HeldBack, taken[0]) {
				t.Errorf("guard: storms %v, held back %v; want ecc, and all who met it but the one drained", g.Storms, g.HeldBack)
			}
			text, err := s.CLI(s.ctx(), "guard", "show")
			if want := hostlist.Compress(g.HeldBack); err != nil || !regexp.MustCompile(`(?m)^Held back +`+regexp.QuoteMeta(want)+`$`).MatchString(text) || !regexp.MustCompile(`(?m)^Storms +ecc on `).MatchString(text) {
				t.Errorf("guard show does not say that ecc is a storm and %s held back: %v\n%s", want, err, text)
			}
			if b := g.Budgets[0]; b.Scope != "fleet hour" || b.Spent != 1 || b.Limit != 1 {
				t.Errorf("budget %+v; want fleet hour, one of one spent", b)
			}
		})
	}
}

// heldBack wants at least so many nodes held back by the guard.
func heldBack(want int) func(map[string]wire.Node) bool {
	return func(ns map[string]wire.Node) bool {
		got := 0
		for _, n := range ns {
			if slices.Contains(n.Marks, "held_back") {
				got++
			}
		}
		return got >= want
	}
}

func (s *site) policy() (p policy.Policy) {
	s.t.Helper()
	s.show(&p, "policy", "show")
	return p
}

func (s *site) guard() (g wire.Guard) {
	s.t.Helper()
	s.show(&g, "guard", "show")
	return g
}

// show reads the JSON that a command prints.
func (s *site) show(into any, args ...string) {
	s.t.Helper()
	out, err := s.CLI(s.ctx(), append(args, "-o", "json")...)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		s.t.Fatal(err)
	}
}

// A pager takes pages, as a site's webhook does.
type pager struct {
	mu  sync.Mutex
	got []string
}

func (p *pager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var page struct{ Reason string }
	if err := json.NewDecoder(r.Body).Decode(&page); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, page.Reason)
}

// reasons are those of the pages so far, in order.
func (p *pager) reasons() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}
