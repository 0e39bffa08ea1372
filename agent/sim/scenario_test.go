package sim

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks/strictyaml"
)

const fleet = `
model: H100
count: 8
driver: 550.54.15
nodes: gpu[001-008]
gpus:
  0: {aggregate_corrected: 12}
overrides:
  - nodes: gpu003
    driver: 470.10.01
    symbols_missing: [nvmlDeviceGetFieldValues]
    gpus:
      3: {remap_pending: true, remap_uncorrectable: 1, persists: true}
  - nodes: gpu[003-004]
    model: A100
    count: 4
    node_serial: SPARE1
    gpus:
      0: {hang: nvmlDeviceGetRemappedRows, heals_after_reboots: 2}
events:
  - {after: 20s, node: gpu003, kmsg: "NVRM: something"}
  - after: 1m
    nodes: gpu[004-005]
    set: {gpu: 3, recovery_action: 2}
    xid: {gpu: 3, code: 94}
  - {after: 2m, fall_off_bus: 0}
`

func TestScenarioGivesEachNodeItsOwn(t *testing.T) {
	sc, err := ParseScenario("f.yaml", []byte(fleet))
	if err != nil {
		t.Fatal(err)
	}
	node := func(name string) State {
		t.Helper()
		s, err := sc.Node(name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	plain := node("gpu001")
	if plain.Model != "H100" || plain.Driver != "550.54.15" || len(plain.GPUs) != 8 || plain.NodeSerial == "" || len(plain.Events) != 1 {
		t.Errorf("gpu001: %+v", plain)
	}
	if g := plain.GPUs[0]; g.AggregateCorrected != 12 || !g.ECCEnabled || g.PCI != "0000:1b:00.0" || g.Hang != "" {
		t.Errorf("gpu001 GPU 0: %+v", g)
	}
	odd := node("gpu003")
	if odd.Model != "A100" || odd.Driver != "470.10.01" || len(odd.GPUs) != 4 || odd.NodeSerial != "SPARE1" || len(odd.SymbolsMissing) != 1 || len(odd.Events) != 2 {
		t.Errorf("gpu003: %+v", odd)
	}
	if g := odd.GPUs[3]; !g.RemapPending || g.RemapUncorrectable != 1 || !g.Persists || g.Name != "NVIDIA A100-SXM4-80GB" {
		t.Errorf("gpu003 GPU 3: %+v", g)
	}
	if g := odd.GPUs[0]; g.Hang != "nvmlDeviceGetRemappedRows" || g.HealsAfterReboots != 2 || g.AggregateCorrected != 12 {
		t.Errorf("gpu003 GPU 0: %+v", g)
	}
	if got := len(node("gpu004").Events); got != 2 {
		t.Errorf("gpu004 has %d events, want 2", got)
	}
	if _, err := sc.Node("gpu009"); err == nil {
		t.Error("a node the scenario does not name was made")
	}
	if again := node("gpu003"); !reflect.DeepEqual(again, odd) {
		t.Error("the same node came out another time differently")
	}
	seen := map[string]bool{}
	for _, n := range []string{"gpu001", "gpu002", "gpu003"} {
		for _, g := range node(n).GPUs {
			if seen[g.UUID] || seen[g.Serial] {
				t.Errorf("%s GPU %d: identity given twice", n, g.Index)
			}
			seen[g.UUID], seen[g.Serial] = true, true
		}
	}
}

func TestScenarioNamesEveryFault(t *testing.T) {
	const text = `model: H101
count: 17
driver: ""
nodes: gpu[001
init: never
node_serial: X
gpus:
  99: {remap_pending: maybe}
  1: {hang: nvmlDeviceGetNothing, not_supported: [x], uuid: abc, heals_after_reboots: -1}
overrides:
  - model: B200
    symbols_missing: [nvmlFoo]
events:
  - {after: -1s}
  - {node: gpu001, nodes: gpu002, xid: {gpu: 20, code: 0}}
  - {set: {gpu: 44, remap_pendign: true}, reset: 77, fall_off_bus: 78}
`
	want := []string{
		`f.yaml:1:8: model: "H101": want one of A100, B200, H100, H200, T4, V100`,
		`f.yaml:2:8: count: 17: want 1 to 16 GPUs`,
		`f.yaml:3:9: driver: "": want a version`,
		`f.yaml:4:8: nodes: hostlist`,
		`f.yaml:5:7: init: "never": want one of hang, library_not_found`,
		`f.yaml:6:14: node_serial: each node has its own`,
		`f.yaml:8:23: gpus.99.remap_pending: "maybe": want true or false`,
		`gpus.99: no GPU 99: a node has 17`,
		`f.yaml:9:13: gpus.1.hang: "nvmlDeviceGetNothing": want all, or one of`,
		`gpus.1.not_supported[0]: "x": want one of`,
		`gpus.1.uuid: "abc": want a GPU's UUID`,
		`gpus.1.heals_after_reboots: want 0 or more`,
		`overrides[0]: nodes: missing`,
		`overrides[0].symbols_missing[0]: "nvmlFoo": want one of`,
		`f.yaml:14:13: events[0].after: want 0s or more`,
		`events[0]: does nothing`,
		`events[1].node: give node or nodes, not both`,
		`events[1].xid.gpu: no GPU 20`,
		`events[1].xid.code: 0: want an XID`,
		`events[2].set.remap_pendign: unknown key; did you mean remap_pending?`,
		`events[2].set.gpu: no GPU 44`,
		`events[2].reset: no GPU 77`,
		`events[2].fall_off_bus: no GPU 78`,
	}
	_, err := ParseScenario("f.yaml", []byte(text))
	var e *strictyaml.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	for _, w := range want {
		if !strings.Contains(e.Error(), w) {
			t.Errorf("not named: %s", w)
		}
	}
	if len(e.Faults) != len(want) {
		t.Errorf("%d faults, want %d:\n%s", len(e.Faults), len(want), e)
	}
	for _, f := range e.Faults {
		if f.Line == 0 {
			t.Errorf("no line: %+v", f)
		}
	}
}

func TestScenarioNodesOutsideTheFleet(t *testing.T) {
	_, err := ParseScenario("f.yaml", []byte("nodes: gpu[1-2]\noverrides:\n  - {nodes: 'gpu[2-4]', count: 4}\nevents:\n  - {nodes: gpu7, reboot: true}\n"))
	for _, w := range []string{"f.yaml:3:13: overrides[0].nodes: gpu[3-4]: not among nodes", "f.yaml:5:13: events[0].nodes: gpu7: not among nodes"} {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want %s", err, w)
		}
	}
}

func TestLoadScenario(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	if _, err := LoadScenario(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte(fleet), 0o644); err != nil {
		t.Fatal(err)
	}
	sc, err := LoadScenario(file)
	if err != nil || len(sc.Events) != 3 || sc.Events[1].After != time.Minute || sc.Events[0].Nodes != "gpu003" {
		t.Errorf("got %+v, %v", sc, err)
	}
}

// The example in the documentation of Scenario is one.
func TestTheDocumentedScenario(t *testing.T) {
	src, err := os.ReadFile("scenario.go")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, _ := strings.Cut(string(src), "Its file:\n//\n")
	var text strings.Builder
	for line := range strings.Lines(doc) {
		line, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			break
		}
		text.WriteString(line)
	}
	sc, err := ParseScenario("example", []byte(text.String()))
	if err != nil || len(sc.Overrides) != 2 || len(sc.Events) != 3 {
		t.Errorf("got %+v, %v", sc, err)
	}
}
