package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim/nvmllib"
	"github.com/assay-gpu/assay/checks/xid"
)

// library is built once for all tests.
var library = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "assay-sim-test-")
	if err != nil {
		panic(err)
	}
	out := filepath.Join(dir, "libnvidia-ml.so.1")
	if err := nvmllib.Build(out); err != nil {
		panic(err)
	}
	return out
})

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(filepath.Dir(library()))
	os.Exit(code)
}

func newNode(t *testing.T, scenario string) string {
	t.Helper()
	sc, err := ParseScenario("scenario.yaml", []byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Init(dir, sc, "gpu001", library()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func state(t *testing.T, dir string) State {
	t.Helper()
	s, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestInitMakesTheWholeNode(t *testing.T) {
	dir := newNode(t, "count: 4\nmodel: A100")
	s, at := state(t, dir), In(dir)
	if got := content(t, at.BootID); got != s.BootID || len(got) != 36 {
		t.Errorf("boot id %q, state says %q", got, s.BootID)
	}
	pci := filepath.Join(at.Sysfs, "bus/pci/devices", s.GPUs[2].PCI)
	for name, want := range map[string]string{
		"vendor": "0x10de", "device": "0x20b2", "class": "0x030200", "numa_node": "1", "current_link_width": "16", "max_link_speed": "16.0 GT/s PCIe",
	} {
		if got := content(t, filepath.Join(pci, name)); got != want {
			t.Errorf("sysfs %s: %q, want %q", name, got, want)
		}
	}
	if got := content(t, filepath.Join(at.Sysfs, "class/dmi/id/product_serial")); got != s.NodeSerial {
		t.Errorf("node serial %q", got)
	}
	if to, err := os.Readlink(at.Library); err != nil || to != library() {
		t.Errorf("library: %q, %v", to, err)
	}
	if log := content(t, at.Kmsg); !strings.HasPrefix(log, "5,0,0,-;Linux version") || strings.Count(log, "\n") != 1 {
		t.Errorf("kernel log %q", log)
	}
	if got := Calls(dir); len(got) != 0 {
		t.Errorf("calls before any: %v", got)
	}
	if err := Init(dir, Scenario{Model: "A100", Count: 1, Driver: "1"}, "gpu001", filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a library that is not there: %v", err)
	}
}

func TestSet(t *testing.T) {
	dir := newNode(t, "count: 2")
	must(t, Set(dir, 1, map[string]string{
		"remap_pending": "true", "volatile_corrected": "18446744073709551615", "hang": "nvmlDeviceGetEccMode", "not_supported": "nvmlDeviceGetSerial, nvmlDeviceGetName", "serial": "42",
	}))
	g := state(t, dir).GPUs[1]
	if !g.RemapPending || g.VolatileCorrected != 1<<64-1 || g.Hang != "nvmlDeviceGetEccMode" || len(g.NotSupported) != 2 || g.Serial != "42" {
		t.Errorf("got %+v", g)
	}
	must(t, Set(dir, 1, map[string]string{"not_supported": "", "hang": ""}))
	if g := state(t, dir).GPUs[1]; len(g.NotSupported) != 0 || g.Hang != "" || !g.RemapPending {
		t.Errorf("got %+v", g)
	}
	must(t, Set(dir, -1, map[string]string{"driver": "1.2.3", "init": "error", "node_serial": "N"}))
	if s := state(t, dir); s.Driver != "1.2.3" || s.Init != "error" || s.NodeSerial != "N" {
		t.Errorf("got %+v", s)
	}
	if got := content(t, filepath.Join(In(dir).Sysfs, "class/dmi/id/product_serial")); got != "N" {
		t.Errorf("node serial in sysfs: %q", got)
	}
	before := state(t, dir)
	for _, tt := range []struct {
		name    string
		gpu     int
		changes map[string]string
		want    []string
	}{
		{"all faults at once", 7, map[string]string{"lost": "yes", "remap_failed": "1", "volatile_corrected": "-1", "recovery_action": "99999999999", "hang": "x", "nope": "1", "uuid": "z", "heals_after_reboots": "-2"},
			[]string{"no GPU 7", "lost: ", "remap_failed: ", "volatile_corrected: ", "too large", "hang: ", "nope: unknown", "uuid: ", "heals_after_reboots: "}},
		{"a GPU's key on the node", -1, map[string]string{"lost": "true"}, []string{"lost: unknown; known are driver, node_serial"}},
		{"the node's own keys", -1, map[string]string{"init": "x", "symbols_missing": "a,b", "driver": ""}, []string{"init: ", "symbols_missing[0]", "symbols_missing[1]", "driver: "}},
		{"names longer than NVML's", 0, map[string]string{"serial": strings.Repeat("1", 40)}, []string{"room for 29"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Set(dir, tt.gpu, tt.changes)
			var e *ChangeError
			if !errors.As(err, &e) || len(e.Faults) != len(tt.want) || e.Hint() == "" {
				t.Fatalf("got %v, want %d faults", err, len(tt.want))
			}
			for _, w := range tt.want {
				if !strings.Contains(e.Error(), w) {
					t.Errorf("got %v, want %q in it", e, w)
				}
			}
		})
	}
	if !reflect.DeepEqual(state(t, dir), before) {
		t.Error("a refused change changed something")
	}
	if err := Set(t.TempDir(), 0, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no node: %v", err)
	}
}

func TestMissingGPULeavesTheBus(t *testing.T) {
	dir := newNode(t, "count: 2")
	pci := filepath.Join(In(dir).Sysfs, "bus/pci/devices", state(t, dir).GPUs[0].PCI)
	must(t, Set(dir, 0, map[string]string{"missing": "true"}))
	if _, err := os.Stat(pci); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still in sysfs: %v", err)
	}
	must(t, Set(dir, 0, map[string]string{"missing": "false"}))
	if got := content(t, filepath.Join(pci, "vendor")); got != "0x10de" {
		t.Errorf("vendor %q", got)
	}
}

const sick = `{ecc_pending: false, volatile_corrected: 1, volatile_uncorrected: 2, aggregate_corrected: 3, aggregate_uncorrected: 4, sram_threshold: true, ` +
	`remap_correctable: 5, remap_uncorrectable: 6, remap_pending: true, remap_failed: true, recovery_action: 2, hang: all%s}`

func TestRebootAndReset(t *testing.T) {
	// What both clear, and what stays with the board for life.
	clean := func(g *GPU) {
		g.ECCEnabled, g.VolatileCorrected, g.VolatileUncorrected = false, 0, 0
		g.RemapPending, g.RecoveryAction, g.Hang, g.Lost, g.Missing = false, 0, "", false, false
	}
	counters := func(g *GPU) { g.ECCEnabled, g.VolatileCorrected, g.VolatileUncorrected = false, 0, 0 }
	for _, tt := range []struct {
		name, more string
		do         func(dir string) error
		want       func(*GPU)
	}{
		{"reboot heals", "", Reboot, clean},
		{"reboot brings back a lost GPU", ", lost: true", Reboot, clean},
		{"reboot brings back a missing GPU", ", missing: true", Reboot, clean},
		{"reboot, but it persists", ", lost: true, persists: true", Reboot, counters},
		{"reset heals", "", func(dir string) error { return Reset(dir, 0) }, clean},
		{"reset, but it persists", ", persists: true", func(dir string) error { return Reset(dir, 0) }, counters},
		{"first of two reboots it takes", ", heals_after_reboots: 2", Reboot, func(g *GPU) { counters(g); g.HealsAfterReboots = 1 }},
		{"second of two", ", heals_after_reboots: 2", func(dir string) error { return errors.Join(Reboot(dir), Reboot(dir)) }, func(g *GPU) { clean(g); g.HealsAfterReboots = 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := newNode(t, "count: 1\ngpus: {0: "+fmt.Sprintf(sick, tt.more)+"}")
			want := state(t, dir).GPUs[0]
			tt.want(&want)
			must(t, tt.do(dir))
			got := state(t, dir).GPUs[0]
			got.RatesSince, got.Held = want.RatesSince, want.Held
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
	t.Run("a lost GPU cannot be reset", func(t *testing.T) {
		dir := newNode(t, "count: 1\ngpus: {0: {lost: true}}")
		if err := Reset(dir, 0); err == nil || !state(t, dir).GPUs[0].Lost {
			t.Errorf("got %v", err)
		}
		if err := Reset(dir, 1); err == nil {
			t.Error("a GPU that is not there was reset")
		}
	})
	t.Run("a driver that does not start", func(t *testing.T) {
		dir := newNode(t, "count: 1\ninit: library_not_found")
		if _, err := os.Lstat(In(dir).Library); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the library is there: %v", err)
		}
		must(t, Reboot(dir))
		if _, err := os.Stat(In(dir).Library); err != nil || state(t, dir).Init != "" {
			t.Errorf("after a reboot: %v", err)
		}
		must(t, Set(dir, -1, map[string]string{"init": "hang", "persists": "true"}))
		must(t, Reboot(dir))
		if state(t, dir).Init != "hang" {
			t.Error("a fault that persists was healed")
		}
	})
	t.Run("boot id and kernel log begin anew", func(t *testing.T) {
		dir := newNode(t, "count: 1")
		must(t, XID(dir, 0, 79, ""))
		was := state(t, dir)
		must(t, Reboot(dir))
		now := state(t, dir)
		if now.BootID == was.BootID || content(t, In(dir).BootID) != now.BootID || now.Boots != 1 {
			t.Errorf("boot id %s after %s", now.BootID, was.BootID)
		}
		must(t, Kmsg(dir, "first", KmsgOptions{}))
		log := content(t, In(dir).Kmsg)
		if strings.Contains(log, "Xid") || !strings.Contains(log, "3,2,") {
			t.Errorf("kernel log %q", log)
		}
	})
}

func TestFallOffBusWritesTheDriversLines(t *testing.T) {
	dir := newNode(t, "count: 8")
	must(t, FallOffBus(dir, 4))
	g := state(t, dir).GPUs[4]
	if !g.Lost {
		t.Error("not lost")
	}
	lines := strings.Split(content(t, In(dir).Kmsg), "\n")[2:]
	want := []string{ // as leptonai/gpud's sxid/README.md shows them, with this GPU's names
		"NVRM: GPU at PCI:0000:9d:00: " + g.UUID,
		"NVRM: GPU Board Serial Number: " + g.Serial,
		"NVRM: Xid (PCI:0000:9d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
		"NVRM: GPU 0000:9d:00.0: GPU has fallen off the bus.",
		"NVRM: GPU 0000:9d:00.0: GPU serial number is " + g.Serial + ".",
	}
	if len(lines) != len(want) {
		t.Fatalf("got %q", lines)
	}
	for i, l := range lines {
		if head, text, _ := strings.Cut(l, ";"); text != want[i] || !strings.HasPrefix(head, fmt.Sprintf("3,%d,", i+2)) {
			t.Errorf("got %q, want record %d with %q", l, i+2, want[i])
		}
	}
}

// What the simulator writes, the check reads.
func TestXIDLinesParse(t *testing.T) {
	dir := newNode(t, "count: 1")
	for code := range xidTexts {
		must(t, XID(dir, 0, code, ""))
		lines := strings.Split(content(t, In(dir).Kmsg), "\n")
		_, text, _ := strings.Cut(lines[len(lines)-1], ";")
		ev, ok := xid.Parse(text)
		if !ok || ev.Code != code {
			t.Errorf("%q parses as %+v, %v", text, ev, ok)
		}
	}
	must(t, XID(dir, 0, 31, "some words"))
	if log := content(t, In(dir).Kmsg); !strings.HasSuffix(log, "): 31, pid='<unknown>', name=<unknown>, some words") {
		t.Errorf("got %q", log[strings.LastIndexByte(log, '\n'):])
	}
	if err := XID(dir, 5, 79, ""); err == nil {
		t.Error("an XID of a GPU that is not there")
	}
}

func TestKmsgRecords(t *testing.T) {
	dir := newNode(t, "count: 1")
	must(t, Kmsg(dir, "tab\there \\ and \xff", KmsgOptions{Priority: 6, Dictionary: []string{"SUBSYSTEM=pci", "DEVICE=+pci:0000:4b:00.0"}}))
	must(t, Kmsg(dir, "cut off mid-li", KmsgOptions{Raw: true}))
	must(t, Kmsg(dir, "\n\xff\xfe junk, with, commas\n", KmsgOptions{Raw: true}))
	must(t, Kmsg(dir, "next", KmsgOptions{}))
	lines := bytes.SplitN([]byte(content(t, In(dir).Kmsg)), []byte("\n"), 3)
	got := string(lines[2])
	for _, want := range []string{
		`6,2,`, `-;tab\x09here \x5c and \xff` + "\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4b:00.0\n", "cut off mid-li\n\xff\xfe junk", "\n3,3,", ";next",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
}

// Several processes may write the log at once: no number is given twice.
func TestKmsgNumbersAreUnique(t *testing.T) {
	dir := newNode(t, "count: 1")
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if err := Kmsg(dir, fmt.Sprintf("writer %d line %d", w, i), KmsgOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	lines := strings.Split(content(t, In(dir).Kmsg), "\n")
	if len(lines) != 202 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, l := range lines {
		if f := strings.Split(l, ","); f[1] != fmt.Sprint(i) {
			t.Errorf("line %d: %q", i, l)
		}
	}
}

func TestRunPlaysEventsInOrder(t *testing.T) {
	dir := newNode(t, `
count: 2
events:
  - {after: 60ms, reset: 1}
  - {after: 20ms, nodes: gpu001, set: {gpu: 1, remap_pending: true}, xid: {gpu: 1, code: 63}}
  - {after: 20ms, nodes: gpu002, fall_off_bus: 0}
  - {after: 40ms, kmsg: plain words}
  - {after: 80ms, fall_off_bus: 0}
  - {after: 1h, reboot: true}
`)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := Run(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if d := time.Since(start); d < 400*time.Millisecond {
		t.Errorf("Run ended after %v", d)
	}
	s := state(t, dir)
	if s.GPUs[1].RemapPending || !s.GPUs[0].Lost || s.Boots != 0 {
		t.Errorf("got %+v", s.GPUs)
	}
	log := content(t, In(dir).Kmsg)
	a, b, c := strings.Index(log, "Row Remapper"), strings.Index(log, "plain words"), strings.Index(log, "): 79")
	if a < 0 || b < a || c < b {
		t.Errorf("order in the log: %d %d %d", a, b, c)
	}
	t.Run("to the end, reboot included", func(t *testing.T) {
		dir := newNode(t, "count: 1\nevents:\n  - {after: 5ms, reboot: true}\n")
		must(t, Run(t.Context(), dir))
		if state(t, dir).Boots != 1 {
			t.Error("no reboot")
		}
	})
}

func TestHideSymbols(t *testing.T) {
	dir := newNode(t, "count: 1\nsymbols_missing: [nvmlDeviceGetRemappedRows]")
	at := In(dir).Library
	if st, err := os.Lstat(at); err != nil || st.Mode()&os.ModeSymlink != 0 {
		t.Fatalf("want a copy: %v, %v", st, err)
	}
	names := []byte(content(t, at))
	if !bytes.Contains(names, []byte("\x00xvmlDeviceGetRemappedRows\x00")) {
		t.Error("the symbol is still there")
	}
	must(t, Set(dir, -1, map[string]string{"symbols_missing": ""}))
	if to, err := os.Readlink(at); err != nil || to != library() {
		t.Errorf("whole again: %q, %v", to, err)
	}
	if err := hideSymbols([]byte("no library"), []string{"x"}); err == nil {
		t.Error("junk was taken for a library")
	}
	b, err := os.ReadFile(library())
	must(t, err)
	if err := hideSymbols(b, []string{"nvmlNothing"}); err == nil || !strings.Contains(err.Error(), "no symbol nvmlNothing") {
		t.Errorf("got %v", err)
	}
}

func TestXIDByLogEventOrBoth(t *testing.T) {
	for via, want := range map[XIDVia]struct{ lines, events int }{LogAndEvent: {1, 1}, LogOnly: {1, 0}, EventOnly: {0, 1}} {
		dir := newNode(t, "count: 2")
		must(t, XIDBy(dir, 1, 95, "", via))
		lines := strings.Count(content(t, In(dir).Kmsg), ": 95, ")
		events, err := os.ReadFile(filepath.Join(dir, "nvml.events"))
		if (err == nil) != (want.events > 0) || lines != want.lines || len(events) != 16*want.events {
			t.Errorf("%d: %d lines, events %x, %v; want %+v", via, lines, events, err, want)
		}
		if want.events > 0 && (events[0] != 1 || events[4] != 95) {
			t.Errorf("%d: %x", via, events)
		}
		must(t, Reboot(dir))
		if _, err := os.Stat(filepath.Join(dir, "nvml.events")); err == nil {
			t.Error("the driver remembers events from before the boot")
		}
	}
}
