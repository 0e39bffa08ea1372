package nvml

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/agent/sim/nvmllib"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/rowremap"
)

// A reading is what one function, or one field of nvmlDeviceGetFieldValues, tells, and what is to be said when it does not.
type reading struct {
	name string // as a scenario names it

	// lacking is what the check says of a GPU that has no such thing, failing what it says when the call fails: check, verdict
	// and words of the reason or the evidence. A check that is not named goes on as on a healthy GPU.
	lacking, failing []string
}

// every is each reading of the probe's. What could make a GPU fail leaves the verdict open when it is not read; what is only
// watched, or shown, is said.
var every = []reading{
	{"nvmlDeviceGetEccMode", []string{"ecc not_applicable no ECC"}, []string{"ecc unknown not read: nvmlDeviceGetEccMode: unknown error"}},
	{"nvmlDeviceGetTotalEccErrors", []string{"ecc unknown not read: nvmlDeviceGetTotalEccErrors: not supported"}, []string{"ecc unknown not read: nvmlDeviceGetTotalEccErrors: unknown error"}},
	{"nvmlDeviceGetSramEccErrorStatus", []string{"ecc pass 0 uncorrected"}, []string{"ecc unknown SRAM error threshold not read"}},
	{"nvmlDeviceGetRemappedRows", []string{"rowremap not_applicable no rows"}, []string{"rowremap unknown not read: nvmlDeviceGetRemappedRows: unknown error"}},
	{"nvmlDeviceGetRowRemapperHistogram", []string{"rowremap pass 0 rows"}, []string{"rowremap pass how many spare rows are left was not read"}},
	{"nvmlDeviceGetCurrentClocksEventReasons", []string{"clocks not_applicable no clock event reasons"}, []string{"clocks unknown not read: nvmlDeviceGetCurrentClocksEventReasons: unknown error"}},
	{"nvmlDeviceGetTemperature", []string{"thermal pass slowdown at a margin"}, []string{"thermal pass slowdown at a margin"}},
	{"nvmlDeviceGetMarginTemperature", []string{"thermal pass slowdown at 90"}, []string{"thermal pass slowdown at 90"}},
	{"nvmlDeviceGetTemperatureThreshold", []string{"thermal pass slowdown at a margin"}, []string{"thermal unknown limit was not read"}},
	{"nvmlDeviceGetUtilizationRates", []string{"pcie pass Gen5"}, []string{"pcie unknown load not read"}},
	{"nvmlDeviceGetPersistenceMode", []string{"modes pass compute=default mig=off"}, []string{"modes unknown persistence mode not read"}},
	{"nvmlDeviceGetComputeMode", []string{"modes pass persistence=on mig=off"}, []string{"modes unknown compute mode not read"}},
	{"nvmlDeviceGetMigMode", []string{"modes pass persistence=on compute=default"}, []string{"modes unknown MIG mode not read"}},
	{"nvmlDeviceGetGpuFabricInfoV", []string{"fabric not_applicable in no fabric"}, []string{"fabric unknown not read: nvmlDeviceGetGpuFabricInfoV: unknown error"}},
	{"nvmlDeviceGetComputeRunningProcesses_v3", nil, nil}, // judged at a job's end
	{"field_230", []string{"recovery not_applicable no recovery action"}, []string{"recovery unknown not read: nvmlDeviceGetFieldValues: unknown error"}},
	{"field_94", []string{"pcie pass Gen5"}, []string{"pcie unknown replays not read"}},
	{"field_82", []string{"thermal pass slowdown"}, []string{"thermal unknown memory temperature not read"}},
	{"field_194", []string{"thermal pass slowdown by its own margin"}, []string{"thermal pass slowdown by its own margin"}},
	{"field_196", []string{"thermal pass slowdown"}, []string{"thermal pass slowdown"}},
	{"field_11", []string{"ecc pass 0 uncorrected"}, []string{"ecc pass dram=unread"}},
	{"field_12", []string{"ecc pass 0 uncorrected"}, []string{"ecc pass dram=unread"}},
	{"field_22", []string{"ecc pass 0 uncorrected"}, []string{"ecc pass dram=unread"}},
	{"field_23", []string{"ecc pass 0 uncorrected"}, []string{"ecc pass dram=unread"}},
	{"field_269", []string{"clocks pass sw_thermal=0s"}, []string{"clocks pass sw_thermal=0s"}}, // the older field tells it too
	{"field_270", []string{"clocks pass no slowdown"}, []string{"clocks pass hw_thermal=unread"}},
	{"field_271", []string{"clocks pass no slowdown"}, []string{"clocks pass power_brake=unread"}},
	{"field_91", []string{"nvlink pass 18 of 18"}, []string{"nvlink unknown NVLinks not read: nvmlDeviceGetFieldValues: unknown error"}},
	{"field_161", []string{"nvlink pass 18 of 18"}, []string{"nvlink unknown replay counter of link 0, 1, 2"}},
	{"field_162", []string{"nvlink pass 18 of 18"}, []string{"nvlink unknown recovery counter of link 0, 1, 2"}},
	{"field_163", []string{"nvlink pass 18 of 18"}, []string{"nvlink unknown CRC counter of link 0, 1, 2"}},
	{"field_164", []string{"nvlink pass 18 of 18"}, []string{"nvlink pass 18 of 18"}}, // speeds are compared where they are told
	{"field_165", []string{"nvlink not_applicable does not tell the state of links"}, []string{"nvlink unknown link 0, 1, 2"}},
	{"field_166", []string{"nvlink pass 18 of 18"}, []string{"nvlink pass 18 of 18"}},
}

// old are the readings of boards from before A100, which retire pages.
var old = []reading{
	{"field_29", []string{"retired not_applicable retires no pages"}, []string{"retired unknown not read: nvmlDeviceGetFieldValues: unknown error"}},
	{"field_30", []string{"retired not_applicable retires no pages"}, []string{"retired unknown not read: nvmlDeviceGetFieldValues: unknown error"}},
	{"field_31", []string{"retired not_applicable retires no pages"}, []string{"retired unknown not read: nvmlDeviceGetFieldValues: unknown error"}},
	{"field_75", []string{"clocks pass no slowdown"}, []string{"clocks pass sw_thermal=unread"}},
}

// newer are those of NVLink 5.
var newer = []reading{
	{"field_220", []string{"nvlink pass 18 of 18"}, []string{"nvlink unknown bit error rate of link 0, 1, 2"}},
	{"field_222", []string{"nvlink pass 18 of 18"}, []string{"nvlink pass 18 of 18"}}, // before correction: shown, not judged
}

// What a GPU does not have is not what could not be read, and neither is zero: each reading, by the real path from the
// library to the finding.
func TestEachReadingThatIsNotThere(t *testing.T) {
	for _, tt := range []struct {
		model string
		of    []reading
	}{{"H100", every}, {"V100", old}, {"B200", newer}} {
		t.Run(tt.model, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "count: 1\nmodel: "+tt.model)
			for range 3 { // until the far ends of all links are known
				n.snapshot(20 * time.Second)
			}
			well := n.snapshot(20 * time.Second)
			was := map[string]string{"not_supported": strings.Join(n.state().GPUs[0].NotSupported, ",")}
			for _, r := range tt.of {
				for _, how := range []struct {
					key  string
					have checks.Availability
					want []string
				}{{"not_supported", checks.NotSupported, r.lacking}, {"unreadable", checks.Unread, r.failing}} {
					n.set(0, how.key, was[how.key]+","+r.name)
					if err := n.Quiesce(t.Context()); err != nil { // a child keeps what does not change: thresholds, and which fields there are
						t.Fatal(err)
					}
					var got catalog.Snapshot
					for range 2 { // the first tells which fields there are
						got = n.snapshot(20 * time.Second)
					}
					n.set(0, how.key, was[how.key])
					if len(got.GPUs) != 1 {
						t.Fatalf("%s %s: %d GPUs", r.name, how.key, len(got.GPUs))
					}
					name := fmt.Sprintf("%s %s", r.name, how.key)
					values(t, name, reflect.ValueOf(well.GPUs[0]), reflect.ValueOf(got.GPUs[0]))
					said(t, name, well, got, how.want)
				}
			}
		})
	}
}

// values complains of a value that stands at zero beside the word that it was read, where a healthy GPU told another.
func values(t *testing.T, name string, well, got reflect.Value) {
	t.Helper()
	switch got.Kind() {
	case reflect.Struct:
		if have := got.FieldByName("Have"); have.IsValid() && have.Type() == reflect.TypeFor[checks.Availability]() {
			w, g := stripped(well), stripped(got)
			if checks.Availability(have.Uint()) == checks.Read && g.IsZero() && !w.IsZero() && got.Type() != reflect.TypeFor[rowremap.Reading]() { // its banks have a word of their own
				t.Errorf("%s: %s is zero and said to be read", name, got.Type())
			}
		}
		for i := range got.NumField() {
			if got.Type().Field(i).IsExported() {
				values(t, name, well.Field(i), got.Field(i))
			}
		}
	case reflect.Slice:
		for i := range min(well.Len(), got.Len()) {
			values(t, name, well.Index(i), got.Index(i))
		}
	}
}

// stripped is a reading without the word on whether it was read.
func stripped(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	out.FieldByName("Have").SetUint(0)
	return out
}

// said compares what the checks say of the GPU with what is wanted; other checks than those named say what they said of a
// healthy one.
func said(t *testing.T, name string, well, got catalog.Snapshot, want []string) {
	t.Helper()
	was := judged(well)
	for check, f := range judged(got) {
		i := slices.IndexFunc(want, func(w string) bool { return strings.HasPrefix(w, check+" ") })
		if i < 0 {
			if f.Verdict != was[check].Verdict {
				t.Errorf("%s: %s is %s %q, was %s", name, check, f.Verdict, f.Reason, was[check].Verdict)
			}
			continue
		}
		_, rest, _ := strings.Cut(want[i], " ")
		verdict, words, _ := strings.Cut(rest, " ")
		if f.Verdict.String() != verdict || !strings.Contains(f.Reason+" "+f.Evidence, words) {
			t.Errorf("%s: %s is %s %q (%s), want %q", name, check, f.Verdict, f.Reason, f.Evidence, rest)
		}
	}
}

// judged are the findings on GPU 0, by check, with the readings that are sysfs's filled in.
func judged(s catalog.Snapshot) map[string]checks.Finding {
	s.GPUs = slices.Clone(s.GPUs)
	for i := range s.GPUs {
		p := &s.GPUs[i].PCIe
		p.Have, p.Width, p.Gen, p.Most.Width, p.Most.Gen = checks.Read, 16, 5, 16, 5
		p.Correctable.Have, p.NonFatal.Have, p.Fatal.Have = checks.NotSupported, checks.NotSupported, checks.NotSupported
	}
	out := map[string]checks.Finding{}
	for _, f := range catalog.Judge(s, nil, policy.Default()) {
		if f.Subject.Kind == checks.KindGPU {
			out[f.Check] = f
		}
	}
	return out
}

// Every function that the probe calls on a GPU to read it, and every field, is in the table.
func TestEachReadingIsInTheTable(t *testing.T) {
	n := newNode(t, "count: 1")
	n.snapshot(20 * time.Second)
	// Those that say who the GPU is, and hear its events; the far ends of links are shown, and an old name is for old drivers.
	others := []string{"nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetName", "nvmlDeviceGetSerial", "nvmlDeviceGetIndex", "nvmlDeviceGetCount_v2",
		"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceRegisterEvents", "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetFieldValues"}
	for name := range sim.Calls(n.dir) {
		if !strings.HasPrefix(name, "nvmlDevice") || slices.Contains(others, name) {
			continue
		}
		if !slices.ContainsFunc(every, func(r reading) bool { return r.name == name }) {
			t.Errorf("%s is called, and no row says what is to be said without it", name)
		}
	}
	for _, f := range slices.Concat(gpuFields, linkFields, berFields) {
		if name := fmt.Sprintf("field_%d", f); !slices.ContainsFunc(slices.Concat(every, old, newer), func(r reading) bool { return r.name == name }) && f != gonvml.FI_DEV_NVLINK_REMOTE_NVLINK_ID {
			t.Errorf("%s is asked for, and no row says what is to be said without it", name)
		}
	}
	for _, r := range slices.Concat(every, old, newer) {
		if !strings.HasPrefix(r.name, "field_") && !slices.Contains(nvmllib.Functions, r.name) {
			t.Errorf("%s is no function of the library", r.name)
		}
	}
}
