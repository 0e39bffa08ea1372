package sim

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSetOnParts(t *testing.T) {
	dir := newNode(t, "count: 2")
	must(t, Set(dir, 1, map[string]string{
		"nvlink.3.state": "down", "nvlink.3.crc": "7", "nvlink.5.effective_ber": "3e-9", "pcie_width": "8", "pcie_gen": "1", "aer_correctable": "12", "aer_fatal": "1",
		"throttle": "hw_thermal, power_brake", "acs": "true", "temperature": "-4", "compute_mode": "prohibited",
	}))
	s := state(t, dir)
	g := s.GPUs[1]
	if l := g.Links[3]; l.State != "down" || l.CRC != 7 || g.Links[5].EffectiveBER != "3e-9" || g.Links[4].State != "up" || g.Temperature != -4 || !reflect.DeepEqual(g.Throttle, []string{"hw_thermal", "power_brake"}) {
		t.Errorf("got %+v", g.Parts)
	}
	if !reflect.DeepEqual(s.GPUs[0].Links[3], Link{State: "up", SpeedMBps: 26562}) {
		t.Errorf("another GPU changed: %+v", s.GPUs[0].Links[3])
	}
	pci := filepath.Join(In(dir).Sysfs, "bus/pci/devices", g.PCI)
	for name, want := range map[string]string{"current_link_width": "8", "max_link_width": "16", "current_link_speed": "2.5 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe"} {
		if got := content(t, filepath.Join(pci, name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := content(t, filepath.Join(pci, "aer_dev_correctable")); !strings.HasSuffix(got, "\nTOTAL_ERR_COR 12") {
		t.Errorf("corrected errors %q", got)
	}
	real, err := filepath.EvalSymlinks(pci)
	must(t, err)
	if got := filepath.Base(filepath.Dir(real)); got != portOf(g.PCI) {
		t.Errorf("the GPU's port is %s, want %s", got, portOf(g.PCI))
	}
	if config, err := os.ReadFile(filepath.Join(filepath.Dir(real), "config")); err != nil || len(config) != 4096 || config[0x106] != 0x1d {
		t.Errorf("port configuration of %d bytes, %v", len(config), err)
	}
}

func TestPartsThatCannotBeSet(t *testing.T) {
	dir := newNode(t, "count: 1\nmodel: V100")
	for _, tt := range []struct{ key, value, want string }{
		{"nvlink.6.state", "down", "nvlink.6: GPU 0, Tesla V100-SXM2-32GB, has 6 links"},
		{"nvlink.-1.state", "down", "nvlink.-1: want a link"},
		{"nvlink", "3", "nvlink: unknown"},
		{"nvlink.3", "down", "nvlink.3: unknown"},
		{"nvlink.3.crc", "-1", "nvlink.3.crc: "},
		{"temperature", "hot", "temperature: "},
		{"pcie_gen", "7", "pcie_gen: 7: want 1 to 6"},
		{"utilization", "101", "utilization: 101"},
		{"fabric", "", `fabric: "": want one of none, not_started, in_progress, completed`},
	} {
		if err := Set(dir, 0, map[string]string{tt.key: tt.value}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s=%s: %v, want %q", tt.key, tt.value, err, tt.want)
		}
	}
	if _, err := (Scenario{Model: "T4", Count: 1, Driver: "1", GPUs: map[int]GPUChange{0: {PartsChange: PartsChange{NVLink: map[int]LinkChange{0: {}}}}}}).Node("n"); err == nil {
		t.Error("a scenario may set a link that the model does not have")
	}
}

// What rises by itself is written down when something else is changed, and goes on from there.
func TestCountersThatRise(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	g := GPU{Parts: models["H100"].healthy()}
	g.RatesSince = start
	replays, crc := uint64(60), uint64(6)
	must(t, g.apply(GPUChange{PartsChange: PartsChange{PCIeReplaysPerMinute: &replays, NVLink: map[int]LinkChange{2: {CRCPerMinute: &crc}}, Throttle: []string{"hw_thermal"}}}, start))
	must(t, g.apply(GPUChange{PartsChange: PartsChange{Throttle: []string{}}}, start.Add(2*time.Minute)))
	must(t, g.apply(GPUChange{}, start.Add(3*time.Minute)))
	if g.PCIeReplays != 180 || g.Links[2].CRC != 18 || g.Links[3].CRC != 0 || g.Held["hw_thermal"] != uint64(2*time.Minute) || g.Held["idle"] != 0 {
		t.Errorf("got %d replays, %d CRC errors, held %v", g.PCIeReplays, g.Links[2].CRC, g.Held)
	}
	must(t, g.apply(GPUChange{}, start)) // a clock that was set back takes nothing away
	if g.PCIeReplays != 180 {
		t.Errorf("%d replays", g.PCIeReplays)
	}
}

func TestRebootHealsParts(t *testing.T) {
	const ill = "pcie_width: 4, throttle: [hw_thermal], temperature: 95, nvlink: {1: {state: down, crc: 9}}, fabric: in_progress, compute_mode: prohibited, " +
		"retired_single: 5, retired_pending: true, banks_none: 2, mig_pending: true, persistence: false, acs: true"
	for _, do := range []func(string) error{Reboot, func(dir string) error { return Reset(dir, 0) }} {
		dir := newNode(t, "count: 1\ngpus: {0: {"+ill+"}}")
		must(t, do(dir))
		got := state(t, dir).GPUs[0].Parts
		want := models["H100"].healthy()
		want.RetiredSingle, want.BanksNone, want.MIG, want.MIGPending, want.Persistence, want.ACS = 5, 2, true, true, false, true
		got.RatesSince, got.Held = want.RatesSince, want.Held
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	dir := newNode(t, "count: 1\ngpus: {0: {persists: true, "+ill+"}}")
	must(t, Reboot(dir))
	if g := state(t, dir).GPUs[0]; g.Links[1].State != "down" || g.PCIeWidth != 4 || !g.MIG {
		t.Errorf("what persists was healed: %+v", g.Parts)
	}
}

func TestPackBER(t *testing.T) {
	for text, want := range map[string]uint64{"1e-6": 6 | 1<<8, "3e-9": 9 | 3<<8, "2.4e-12": 12 | 2<<8, "1.5e-254": 254 | 2<<8, "0.5": 1 | 5<<8} {
		if got, err := packBER(text); got != want || err != nil {
			t.Errorf("%s: %#x, %v, want %#x", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "1", "2", "-1e-6", "x"} {
		if got, err := packBER(text); err == nil {
			t.Errorf("%q: %#x", text, got)
		}
	}
}
