package catalog

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/fabric"
	"github.com/assay-gpu/assay/checks/modes"
	"github.com/assay-gpu/assay/checks/nvlink"
	"github.com/assay-gpu/assay/checks/pcie"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/recovery"
	"github.com/assay-gpu/assay/checks/retired"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/thermal"
	"github.com/assay-gpu/assay/checks/xid"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// healthy is a snapshot of n GPUs without a fault.
func healthy(n int) Snapshot {
	s := Snapshot{At: at, Node: "gpu001", BootID: "boot", Driver: "550.54.15", Library: "12.550.54.15", Init: driver.Init{OK: true}, Count: n, Host: healthyHost()}
	for i := range n {
		s.GPUs = append(s.GPUs, GPUState{
			GPU: checks.GPU{UUID: fmt.Sprintf("GPU-%d", i), Index: i, PCI: fmt.Sprintf("0000:%02x:00.0", i+1), Name: "NVIDIA H100"},
			ECC: ecc.Reading{Have: checks.Read, Enabled: true, HaveSRAM: checks.Read}, RowRemap: rowremap.Reading{Have: checks.Read}, Recovery: recovery.Reading{Have: checks.Read},
			Retired: retired.Reading{Have: checks.NotSupported}, NVLink: nvlink.Reading{Have: checks.Read, Links: []nvlink.Link{quietLink(nvlink.Active)}},
			PCIe: pcie.Reading{Have: checks.Read, Width: 16, Gen: 5, Most: pcie.End{Width: 16, Gen: 5}, Busy: checks.Read,
				Replays: counter.Of(0), Correctable: counter.Of(0), NonFatal: counter.Of(0), Fatal: counter.Of(0)},
			Clocks: clocks.Reading{Have: checks.Read}, Thermal: thermal.Reading{Core: thermal.At(40), Slowdown: thermal.At(90), Memory: thermal.At(40), MemoryMax: thermal.At(95)},
			Modes: modes.Reading{HavePersistence: checks.Read, Persistence: true, HaveCompute: checks.Read, HaveMIG: checks.Read}, Fabric: fabric.Reading{Have: checks.Read, State: fabric.Completed},
		})
	}
	return s
}

// quietLink is an NVLink whose counters were read and stand at zero.
func quietLink(s nvlink.State) nvlink.Link {
	none := nvlink.BER{Have: checks.NotSupported} // before NVLink 5
	return nvlink.Link{Have: checks.Read, State: s, Replay: counter.Of(0), Recovery: counter.Of(0), CRC: counter.Of(0), Effective: none, Symbol: none}
}

func acting() policy.Policy {
	p := policy.Default()
	p.Mode = policy.Act
	return p
}

// brief prints what is not a plain pass.
func brief(fs []checks.Finding) string {
	var out []string
	for _, f := range fs {
		if f.Verdict == checks.Pass && f.Action == checks.None || f.Check == retired.ID && f.Verdict == checks.NotApplicable {
			continue // no H100 retires pages
		}
		s := fmt.Sprintf("%s %s %s %s", f.Check, f.Subject.Key(), f.Verdict, f.Action)
		if f.Hard {
			s += " hard"
		}
		if f.Secondary {
			s += " secondary"
		}
		out = append(out, s)
	}
	return strings.Join(out, "\n")
}

func TestJudge(t *testing.T) {
	eight := healthy(8).Inventory()
	for _, tt := range []struct {
		name    string
		change  func(*Snapshot)
		policy  func(*policy.Policy)
		verdict checks.Verdict
		want    string
	}{
		{"healthy", func(*Snapshot) {}, nil, checks.Pass, ""},
		{"a lost GPU counts once, whatever could not be read of it", func(s *Snapshot) {
			g := s.GPUs[3].GPU
			s.Count, s.GPUs[3] = 8, GPUState{GPU: g, Call: driver.Call{Lost: true}}
		}, nil, checks.Fail, "driver gpu/GPU-3 fail reboot hard\n" + unread("gpu/GPU-3", ofGPUs...)},
		{"a missing GPU", func(s *Snapshot) { s.Count, s.GPUs = 7, s.GPUs[:7] }, nil, checks.Fail, "inventory gpu/GPU-7 fail reboot hard"},
		{"lost and asked to reboot: the driver's verdict follows from the loss", func(s *Snapshot) {
			s.GPUs[0].Call.Lost, s.GPUs[0].Recovery.Action = true, 2
		}, nil, checks.Fail, "driver gpu/GPU-0 fail reboot hard\nrecovery gpu/GPU-0 fail reboot hard secondary"},
		{"two GPUs at fault are two faults", func(s *Snapshot) { s.GPUs[0].RowRemap.Failed, s.GPUs[1].RowRemap.Pending = true, true }, nil, checks.Fail,
			"rowremap gpu/GPU-0 fail rma hard\nrowremap gpu/GPU-1 pass reset_gpu"},
		{"a pending remap passes", func(s *Snapshot) { s.GPUs[1].RowRemap.Pending = true }, nil, checks.Pass, "rowremap gpu/GPU-1 pass reset_gpu"},
		{"what the hardware does not have leaves a pass", func(s *Snapshot) {
			for i := range s.GPUs {
				s.GPUs[i].ECC, s.GPUs[i].Recovery.Have = ecc.Reading{Have: checks.NotSupported}, checks.NotSupported
			}
		}, nil, checks.Pass, strings.TrimSpace(strings.Join(append(each("recovery", 8, "not_applicable none"), each("ecc", 8, "not_applicable none")...), "\n"))},
		{"NVML does not start", func(s *Snapshot) {
			*s = Snapshot{At: at, Node: "gpu001", BootID: "boot", Init: driver.Init{Err: "no library"}, Count: -1, Host: healthyHost()}
		}, nil, checks.Unknown,
			unread("node", "driver", "inventory") + "\n" + unread("node", ofGPUs...)},
		{"NVML does not start, identities known from before prove nothing", func(s *Snapshot) { s.Init = driver.Init{Err: "no library"} }, nil, checks.Unknown,
			"driver node unknown none\ninventory node unknown none"},
		{"NVML hangs at init", func(s *Snapshot) {
			s.Init, s.Count, s.GPUs, s.Driver = driver.Init{HungCount: 3}, -1, nil, ""
		}, nil, checks.Fail, "driver node fail reboot hard\ninventory node unknown none\n" + unread("node", ofGPUs...)},
		{"an empty snapshot proves nothing", func(s *Snapshot) { *s = Snapshot{} }, nil, checks.Unknown,
			unread("node", "driver", "inventory") + "\n" + unread("node", append(ofGPUs[:len(ofGPUs):len(ofGPUs)], strings.Fields(hostIDs)...)...)},
		{"a driver updated without a reboot", func(s *Snapshot) { s.Init.Mismatch = true }, nil, checks.Fail, "modes node fail reboot"},
		{"a broken NVLink", func(s *Snapshot) {
			s.GPUs[2].NVLink.Links[0].State = nvlink.Inactive
			s.GPUs[2].Name = "NVIDIA H100 80GB HBM3"
			for i := range s.GPUs {
				s.GPUs[i].Name = "NVIDIA H100 80GB HBM3"
			}
		}, nil, checks.Fail, "nvlink gpu/GPU-2 fail reboot"},
		{"no GPU in a fabric is judged by another's", func(s *Snapshot) { s.GPUs[2].Fabric.State = fabric.InProgress }, nil, checks.Unknown, "fabric gpu/GPU-2 unknown none"},
		{"a narrow link", func(s *Snapshot) { s.GPUs[2].PCIe.Width = 8 }, nil, checks.Fail, "pcie gpu/GPU-2 fail drain"},
		{"a thermal slowdown", func(s *Snapshot) { s.GPUs[2].Clocks.Reasons = clocks.HWThermal }, nil, checks.Fail, "clocks gpu/GPU-2 fail drain"},
		{"a hot core", func(s *Snapshot) { s.GPUs[2].Thermal.Core.C = 90 }, nil, checks.Fail, "thermal gpu/GPU-2 fail drain"},
		{"a full table of retired pages", func(s *Snapshot) { s.GPUs[2].Retired = retired.Reading{Have: checks.Read, Single: 63} }, nil, checks.Fail, "retired gpu/GPU-2 fail rma"},
		{"a GPU on which nothing may compute", func(s *Snapshot) { s.GPUs[2].Modes.Compute = modes.Prohibited }, nil, checks.Fail, "modes gpu/GPU-2 fail fix_config"},
		{"policy sets the limit", func(s *Snapshot) { s.GPUs[0].RowRemap.Correctable = 4 }, func(p *policy.Policy) { p.RowRemap.MaxCorrectable = 3 }, checks.Fail, "rowremap gpu/GPU-0 fail drain"},
		{"policy sets how often a call may hang", func(s *Snapshot) { s.GPUs[0].Call = driver.Call{Hung: "nvmlX", HungCount: 1} }, func(p *policy.Policy) { p.Agent.HungChildren = 1 }, checks.Fail, "driver gpu/GPU-0 fail reboot hard"},
		{"hung less often than policy says", func(s *Snapshot) { s.GPUs[0].Call = driver.Call{Hung: "nvmlX", HungCount: 2} }, nil, checks.Unknown, "driver gpu/GPU-0 unknown watch"},
		{"a check that is off says nothing", func(s *Snapshot) { s.GPUs[0].RowRemap.Failed = true }, func(p *policy.Policy) { p.Checks = map[string]policy.Check{"rowremap": {Mode: policy.Off}} }, checks.Pass, ""},
		{"a check that observes says what would be done", func(s *Snapshot) { s.GPUs[0].RowRemap.Failed = true }, func(p *policy.Policy) { p.Mode = policy.Observe }, checks.Fail, "rowremap gpu/GPU-0 fail rma hard"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := healthy(8), acting()
			tt.change(&s)
			if tt.policy != nil {
				tt.policy(&p)
			}
			fs := Judge(s, &eight, p)
			if got := brief(fs); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if v := checks.FoldFindings(fs); v != tt.verdict {
				t.Errorf("folds to %v, want %v", v, tt.verdict)
			}
			for _, f := range fs {
				if !f.At.Equal(s.At) || f.BootID != s.BootID || f.Subject.Node != s.Node || f.Reason == "" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// ofGPUs are the checks that judge each GPU by what was read of it.
var ofGPUs = []string{"recovery", "rowremap", "ecc", "retired", "nvlink", "fabric", "pcie", "clocks", "thermal", "modes"}

// unread are the findings of checks that could not be made on a subject, as brief prints them.
func unread(subject string, ids ...string) string {
	var out []string
	for _, id := range ids {
		out = append(out, id+" "+subject+" unknown none")
	}
	return strings.Join(out, "\n")
}

func each(check string, n int, rest string) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s gpu/GPU-%d %s", check, i, rest))
	}
	return out
}

func TestJudgeIsRepeatable(t *testing.T) {
	s := healthy(8)
	s.GPUs[2].Call.Lost, s.GPUs[5].RowRemap.Failed = true, true
	if a, b := Judge(s, nil, acting()), Judge(s, nil, acting()); !reflect.DeepEqual(a, b) {
		t.Errorf("the same snapshot gave other findings:\n%+v\n%+v", a, b)
	}
}

func TestJudgeRunsInTheOrderOfTheCatalog(t *testing.T) {
	var order []string
	for _, f := range Judge(healthy(2), nil, acting()) {
		if len(order) == 0 || order[len(order)-1] != f.Check {
			order = append(order, f.Check)
		}
	}
	if want := Suite(checks.Quick); !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}

func TestJudgeLog(t *testing.T) {
	known := healthy(8).Inventory()
	lines := []string{
		"NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.",
		"nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
		"nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Severity 1 Engine instance 60 Sub-engine instance 00",
		"NVRM: Xid (PCI:00ff:04:00): 31, MMU Fault",
		"NVRM: installed in this system has fallen off the bus and is not responding to commands.",
	}
	var events []LogEvent
	for i, l := range lines {
		e, ok := xid.Parse(l)
		if !ok {
			t.Fatal(l)
		}
		events = append(events, LogEvent{Event: e, At: at.Add(time.Duration(i) * time.Second)})
	}
	fs := JudgeLog(events, known, aer.Tree{}, acting())
	if got, want := brief(fs), "xid gpu/GPU-3 fail reboot hard\nsxid switch/0000:06:00.0/link48 fail reboot\nxid gpu/00ff:04:00.0 not_applicable restart_app\nxid node fail reboot hard"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if f := fs[0]; f.Subject.GPUIndex == nil || *f.Subject.GPUIndex != 3 || f.Subject.PCI != "0000:04:00.0" || f.Subject.Node != "gpu001" || f.BootID != "boot" || !f.At.Equal(at) {
		t.Errorf("%+v", f)
	}
	if fs[1].Subject.GPUUUID != "" || !fs[2].At.Equal(at.Add(3*time.Second)) {
		t.Errorf("%+v", fs[1:])
	}
	p := acting()
	p.Checks = map[string]policy.Check{"xid": {Mode: policy.Off}}
	if got := brief(JudgeLog(events, known, aer.Tree{}, p)); got != "sxid switch/0000:06:00.0/link48 fail reboot" {
		t.Errorf("with xid off: %s", got)
	}
}

func TestALogNeverMakesASuitePassOrUnknown(t *testing.T) {
	base := Judge(healthy(8), nil, acting())
	var events []LogEvent
	for _, line := range []string{"174, new", "154", "13, x", "45, x", "14, x", "149, NETIR"} {
		e, ok := xid.Parse("NVRM: Xid (PCI:0000:01:00): " + line)
		if !ok {
			t.Fatal(line)
		}
		events = append(events, LogEvent{Event: e, At: at})
	}
	log := JudgeLog(events, checks.Inventory{}, aer.Tree{}, acting())
	if v := checks.FoldFindings(append(base, log...)); v != checks.Pass {
		t.Errorf("a healthy node with harmless lines folds to %v", v)
	}
	if v := checks.FoldFindings(log); v != checks.Unknown {
		t.Errorf("harmless lines alone fold to %v", v)
	}
}

func TestMode(t *testing.T) {
	for _, tt := range []struct {
		fleet, check, want policy.Mode
	}{
		{policy.Observe, "", policy.Observe}, {policy.Act, "", policy.Act}, {policy.Off, "", policy.Off},
		{policy.Observe, policy.Act, policy.Act}, {policy.Act, policy.Observe, policy.Observe}, {policy.Act, policy.Off, policy.Off},
	} {
		p := policy.Policy{Mode: tt.fleet, Checks: map[string]policy.Check{"ecc": {Mode: tt.check}}}
		if got := p.ModeOf("ecc"); got != tt.want || Acts(p, "ecc") != (tt.want == policy.Act) {
			t.Errorf("fleet %q, check %q: %q, acts %t, want %q", tt.fleet, tt.check, got, Acts(p, "ecc"), tt.want)
		}
		if got := p.ModeOf("xid"); got != tt.fleet {
			t.Errorf("a check that is not named has mode %q, want the fleet's %q", got, tt.fleet)
		}
	}
}

func TestSuites(t *testing.T) {
	want := append(append([]string{"driver", "inventory"}, ofGPUs...), strings.Fields(hostIDs)...)
	for l := checks.QuickMIG; l <= checks.Intake; l++ {
		if got := Suite(l); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", l, got, want)
		}
	}
	if got := Suite(checks.NoLevel); len(got) != 0 {
		t.Errorf("no level has the suite %v", got)
	}
}

func TestCoverage(t *testing.T) {
	s := healthy(2)
	s.GPUs[1].ECC = ecc.Reading{}
	s.GPUs[1].Recovery.Have = checks.NotSupported
	p := acting()
	p.Checks = map[string]policy.Check{"inventory": {Mode: policy.Off}}
	tested, not := Coverage(checks.Quick, Judge(s, nil, p))
	if got, want := fmt.Sprint(tested, not), "[driver recovery rowremap retired nvlink fabric pcie clocks thermal modes "+hostIDs+"] [inventory ecc]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDigest(t *testing.T) {
	base := Digest(checks.Quick, policy.Default())
	if !strings.HasPrefix(base, "sha256:") || len(base) != len("sha256:")+64 {
		t.Errorf("got %q", base)
	}
	for name, change := range map[string]func(*policy.Policy){
		"guard": func(p *policy.Policy) { p.Guard.FleetHourShare = 0.5 }, "mode": func(p *policy.Policy) { p.Mode = policy.Act }, "version": func(p *policy.Policy) { p.Version = 9 },
		"an XID's action": func(p *policy.Policy) { p.XID.Actions = map[int]string{79: "watch"} }, "interval": func(p *policy.Policy) { p.Agent.Interval++ },
		"a check observes": func(p *policy.Policy) { p.Checks = map[string]policy.Check{"ecc": {Mode: policy.Observe}} },
	} {
		p := policy.Default()
		change(&p)
		if Digest(checks.Quick, p) != base {
			t.Errorf("%s: the digest changed, though a pass means the same", name)
		}
	}
	seen := map[string]string{base: "the default"}
	for name, change := range map[string]func(*policy.Policy){
		"ecc": func(p *policy.Policy) { p.ECC.MaxVolatileCorrected++ }, "rows": func(p *policy.Policy) { p.RowRemap.MaxCorrectable++ }, "count": func(p *policy.Policy) { p.Inventory.Count++ },
		"a check off": func(p *policy.Policy) { p.Checks = map[string]policy.Check{"ecc": {Mode: policy.Off}} }, "children": func(p *policy.Policy) { p.Agent.HungChildren++ },
	} {
		p := policy.Default()
		change(&p)
		d := Digest(checks.Quick, p)
		if other, dup := seen[d]; dup {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[d] = name
	}
	if Digest(checks.Standard, policy.Default()) == base {
		t.Error("two levels have one digest")
	}
}

func TestEveryCheckIsExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range All() {
		if seen[c.ID] {
			t.Errorf("%s is listed twice", c.ID)
		}
		seen[c.ID] = true
		for name, text := range map[string]string{"title": c.Title, "doc": c.Doc, "unit": c.Unit, "source": c.Source, "applies": c.Applies, "action": c.Action, "cost": c.Cost,
			"word on NHC": c.Neighbours.NHC, "word on gpud": c.Neighbours.Gpud, "word on NVSentinel": c.Neighbours.NVSentinel, "word on DCGM": c.Neighbours.DCGM} {
			if text == "" {
				t.Errorf("%s has no %s", c.ID, name)
			}
		}
		if c.Revision < 1 {
			t.Errorf("%s has revision %d", c.ID, c.Revision)
		}
		text, ok := Explain(c.ID)
		if !ok || !strings.HasPrefix(text, c.ID+": "+c.Title) {
			t.Errorf("%s: %q", c.ID, text)
		}
		for _, th := range c.Thresholds {
			if !strings.Contains(text, th.Path) {
				t.Errorf("%s does not name %s", c.ID, th.Path)
			}
		}
	}
	if _, ok := Explain("no-such-check"); ok {
		t.Error("a check that does not exist is explained")
	}
}

// Each check is a package of its own, and each such package is in the catalog.
func TestEveryCheckPackageIsListed(t *testing.T) {
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	shared := map[string]bool{"kernlog": true, "logtext": true, "catalog": true, "policy": true, "importrules": true, "strictyaml": true, "mutants": true, "checktest": true, "strike": true, "tally": true, "port": true, "counter": true, "hostlist": true}
	for _, e := range entries {
		if e.IsDir() && !shared[e.Name()] && e.Name() != "testdata" && !slices.Contains(IDs(), e.Name()) {
			t.Errorf("checks/%s is not in the catalog", e.Name())
		}
	}
}

func TestExplainOfOneCheck(t *testing.T) {
	got, _ := Explain("rowremap")
	want := `rowremap: the row remapper has spare rows

Reads the row remapper, which swaps faulty memory rows for spare ones. A pending remap is safe to compute on and
takes effect at the next GPU reset, so it passes and asks for a reset when the node is idle. A remap that failed is
grounds for RMA and a hard fault. Many rows remapped after correctable errors foretell worse: 83 % of such nodes regress
(Anubis, ATC'24). A memory bank without a spare row is watched, as are very many rows remapped after uncorrectable errors.

unit        rows
source      nvmlDeviceGetRemappedRows, nvmlDeviceGetRowRemapperHistogram; NVIDIA, "GPU Memory Error Management"
applies to  A100 and later; others say not supported
action      rma for a failed remap (hard); drain; reset_gpu when idle for a pending one; watch
cost        2 calls a GPU
suites      quick-mig, quick, standard, soak, intake
policy      row_remap.max_correctable (default 10)
            row_remap.watch_uncorrectable (default 512)

how others treat the same signal
NHC         none
gpud        pending: reboot; failed: inspection; by product names; a query that fails ends as healthy
NVSentinel  failed: contact support; pending: reset, which DCGM raises in its diagnostic only
DCGM health failed fails; 512 rows after uncorrectable errors warn; pending in the diagnostic only
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What one GPU says it has not, while its peers have it, is no property of the product: it proves nothing.
func TestAGPUThatAnswersLessThanItsPeers(t *testing.T) {
	gpu := func(i int, name string, have checks.Availability) GPUState {
		return GPUState{GPU: checks.GPU{UUID: fmt.Sprint("GPU-", i), Index: i, Name: name}, ECC: ecc.Reading{Have: have, Enabled: true}, RowRemap: rowremap.Reading{Have: have}}
	}
	for _, tt := range []struct {
		name string
		gpus []GPUState
		want checks.Verdict // of GPU 0
	}{
		{"its peer answers", []GPUState{gpu(0, "H100", checks.NotSupported), gpu(1, "H100", checks.Read)}, checks.Unknown},
		{"none of them has it", []GPUState{gpu(0, "H100", checks.NotSupported), gpu(1, "H100", checks.NotSupported)}, checks.NotApplicable},
		{"another product has it", []GPUState{gpu(0, "T400", checks.NotSupported), gpu(1, "H100", checks.Read)}, checks.NotApplicable},
		{"its peer was not asked", []GPUState{gpu(0, "H100", checks.NotSupported), gpu(1, "H100", checks.Unread)}, checks.NotApplicable},
	} {
		for _, f := range Judge(Snapshot{Node: "n", GPUs: tt.gpus}, nil, policy.Default()) {
			if (f.Check == ecc.ID || f.Check == rowremap.ID) && f.Subject.GPUUUID == "GPU-0" && f.Verdict != tt.want {
				t.Errorf("%s: %s is %v, want %v: %s", tt.name, f.Check, f.Verdict, tt.want, f.Reason)
			}
		}
	}
}
