// Package packaging holds what is installed beside the programs. Its tests hold units, rules, configuration and
// documents to each other, and the whole tree to its import rules.
package packaging

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/assay-gpu/assay/"

// outside says which of our packages may import a module that is not ours, and why no other. Folders are prefixes. Tests
// may import any of these.
var outside = []struct {
	module string
	in     []string
	why    string
}{
	{"github.com/NVIDIA/go-nvml/", []string{"agent/probe/nvml"}, "it is cgo and may hang: only the probe's child calls the driver"},
	{"go.etcd.io/etcd/", []string{"coordinator/store"}, "only the store talks to etcd"},
	{"google.golang.org/grpc", []string{"coordinator/store"}, "etcd's errors are gRPC's, and nobody else sees them"},
	{"go.uber.org/zap", []string{"coordinator/store"}, "etcd logs with it; we log with slog"},
	{"github.com/prometheus/client_golang/", []string{"agent/metrics", "coordinator/api"}, "metrics watch decisions; they never make one"},
	{"github.com/ebitengine/purego", []string{"golden/cuda", "agent/probe/dcgm"}, "the CUDA driver and DCGM are each called in one place, in a child that may be killed"},
	{"github.com/spf13/", []string{"cmd"}, "command lines are read in cmd"},
	{"github.com/coreos/go-systemd/", []string{"cmd", "agent/launch"}, "only the programs' edges know who runs them"},
	{"github.com/jedib0t/go-pretty/", []string{"cmd"}, "tables are for people at a terminal"},
	{"golang.org/x/term", []string{"cmd"}, "terminals are the command line's"},
	{"github.com/goccy/go-yaml", []string{"checks/strictyaml", "agent/sim", "cmd"}, "configuration is read by strictyaml, which reports every fault at once"},
	{"github.com/fsnotify/fsnotify", []string{"agent/sim"}, "only the simulated hardware watches files"},
	{"golang.org/x/net/", []string{"agent/control", "coordinator/api", "coordinator/client"}, "HTTP/2 belongs to the edges"},
	{"golang.org/x/sys/", []string{"agent", "cmd", "coordinator/api", "coordinator/store"}, "system calls belong to the edges"},
	{"golang.org/x/sync/", []string{"agent", "cmd", "coordinator"}, "goroutines belong to the edges"},
	{"github.com/cockroachdb/datadriven", nil, "for tests"},
	{"github.com/rogpeppe/go-internal/", nil, "for tests"},
	{"pgregory.net/rapid", nil, "for tests"},
}

// inside says which of our own packages a package may import: the tree is read in one direction. The first prefix that
// fits a package holds; "." is the package itself and what is below it.
var inside = []struct {
	pkg   string
	allow []string
	why   string
}{
	{"cmd/assay-hook", []string{"."}, "the hook is small, and asks"},
	{"cmd/assay/", []string{".", "checks", "coordinator/api", "coordinator/authority", "coordinator/client", "coordinator/wire", "coordinator/certificate", "coordinator/lifecycle", "coordinator/replay", "coordinator/rma", "scheduler", "cmd/internal/faults", "cmd/internal/tab"}, "the command line uses the API, and pure packages for what needs no control plane"},
	{"cmd/", nil, ""},
	{"packaging/bench/", []string{"packaging/bench", "checks/hostlist", "scheduler/sim/chart"}, "a benchmark draws and counts, and measures the programs from outside"},
	{"packaging/", []string{}, "what is installed is no code"},
	{"checks/bandwidth/", []string{"checks", "golden"}, "a check judges what a run has shown"},
	{"checks/sdc/", []string{"checks", "golden"}, "a check judges what a run has shown"},
	{"checks/", []string{"checks"}, "checks know nothing of who asks"},
	{"golden/worker/", []string{"golden", "agent/tether"}, "the suites know nothing of who asks; a child's life hangs on its parent's in one way"},
	{"golden/", []string{"golden"}, "the suites know nothing of who asks"},
	{"agent/sim/", []string{".", "golden/fakecuda", "checks/strictyaml", "checks/hostlist"}, "simulated hardware shares no code with what reads or judges it; reading a scenario file is neither"},
	{"agent/tether/", []string{}, "it starts processes, and knows nothing of them"},
	{"agent/probe/golden/", []string{".", "checks", "golden"}, "it has the worker run what policy asks for"},
	{"agent/probe/", []string{".", "checks", "agent/atomicfile", "agent/tether"}, "a probe reads one outside world, keeps what must outlive it, and outlives nothing"},
	{"agent/", []string{"agent", "checks", "golden", "coordinator/certificate", "coordinator/wire", "coordinator/authority", "coordinator/lifecycle", "coordinator/killpoint"}, "the agent knows the control plane by its messages, and the names of states and effects in them"},
	{"coordinator/store/", []string{".", "coordinator/store"}, "the store has no domain type"},
	{"coordinator/wire/", []string{"checks", "coordinator/certificate", "scheduler"}, "messages are data; what a job asks for is the scheduler's word"},
	{"coordinator/certificate/", []string{"checks"}, "a certificate is data"},
	{"coordinator/guard/", []string{"checks", "coordinator/wire"}, "budgets are arithmetic"},
	{"coordinator/lifecycle/", []string{"checks", "coordinator/certificate", "coordinator/guard"}, "the state machine is pure"},
	{"coordinator/", []string{"coordinator", "scheduler", "checks"}, "the control plane knows agents by their messages only"},
	{"scheduler/", []string{"scheduler", "checks", "coordinator/certificate"}, "placement is pure"},
}

// source is one Go file of the tree, or rather what it imports.
type source struct {
	dir, file string
	test      bool
	imports   []string
}

func sources(t *testing.T) []source {
	t.Helper()
	root := ".."
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (name == "testdata" || name == "bin" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s := source{dir: filepath.ToSlash(filepath.Dir(rel)) + "/", file: rel, test: strings.HasSuffix(path, "_test.go")}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, p)
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("found only %d Go files", len(all))
	}
	return all
}

// under reports whether dir, as "a/b/", is folder prefix or below it.
func under(dir, prefix string) bool {
	return strings.HasPrefix(dir, strings.TrimSuffix(prefix, "/")+"/")
}

func TestImportsFromOutside(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range s.imports {
			first, _, _ := strings.Cut(imp, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(imp, module) {
				continue
			}
			known := false
			for _, o := range outside {
				if imp != strings.TrimSuffix(o.module, "/") && !strings.HasPrefix(imp, strings.TrimSuffix(o.module, "/")+"/") {
					continue
				}
				known = true
				// Helpers of tests are packages that end in test.
				if s.test || strings.HasSuffix(s.dir, "test/") || slices.ContainsFunc(o.in, func(p string) bool { return under(s.dir, p) }) {
					continue
				}
				t.Errorf("%s imports %s, which only %v may: %s", s.file, imp, o.in, o.why)
			}
			if !known {
				t.Errorf("%s imports %s, a module that no rule speaks of: say in packaging/imports_test.go who may, and why", s.file, imp)
			}
		}
	}
}

func TestImportsInside(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || strings.HasSuffix(s.dir, "test/") {
			continue
		}
		for _, rule := range inside {
			if !strings.HasPrefix(s.dir, strings.TrimSuffix(rule.pkg, "/")+"/") {
				continue
			}
			for _, imp := range s.imports {
				imp, ours := strings.CutPrefix(imp, module)
				if !ours || rule.allow == nil {
					continue
				}
				ok := slices.ContainsFunc(rule.allow, func(p string) bool {
					if p == "." {
						p = strings.TrimSuffix(rule.pkg, "/")
					}
					return under(imp+"/", p)
				})
				if !ok {
					t.Errorf("%s imports %s; allowed are %v: %s", s.file, imp, rule.allow, rule.why)
				}
			}
			break
		}
	}
}

// Some things must not be linked in at all, through however many packages.
func TestImportsLinked(t *testing.T) {
	for _, tt := range []struct {
		program string
		never   []string
		why     string
	}{
		{"cmd/assay-hook", []string{"os", "fmt", "net", "time", "encoding/json", "flag", "log", "context", "C"}, "their start is most of what a hook costs"},
		{"cmd/assay-agent", []string{"go.etcd.io/"}, "agents never talk to etcd"},
		{"cmd/assay", []string{"go.etcd.io/", "github.com/NVIDIA/"}, "the command line uses the API only"},
		{"cmd/assayd", []string{"github.com/NVIDIA/"}, "a control host has no driver"},
	} {
		cmd := exec.Command("go", "list", "-deps", "./"+tt.program)
		cmd.Dir = ".."
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("go list %s: %v", tt.program, err)
			continue
		}
		deps := strings.Fields(string(out))
		for _, never := range tt.never {
			if i := slices.IndexFunc(deps, func(d string) bool {
				return d == never || strings.HasSuffix(never, "/") && strings.HasPrefix(d, never)
			}); i >= 0 {
				t.Errorf("%s links %s: %s", tt.program, deps[i], tt.why)
			}
		}
		if tt.program == "cmd/assay-hook" {
			for _, d := range deps {
				if first, _, _ := strings.Cut(d, "/"); strings.Contains(first, ".") && !strings.HasPrefix(d, module) {
					t.Errorf("cmd/assay-hook links %s: it uses the standard library alone", d)
				}
			}
		}
	}
}
