package nvml

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/nvlink"
	"github.com/assay-gpu/assay/checks/policy"
)

// The drivers of these stories. R450 numbered its fields up to 160 and had none with a link's number as their scope.
const (
	r450 = "driver: 450.80.02\nnewest_field: 160\nsymbols_missing: [nvmlDeviceGetMarginTemperature, nvmlDeviceGetGpuFabricInfoV, nvmlDeviceGetSramEccErrorStatus, nvmlDeviceGetCurrentClocksEventReasons]\n"
	bare = "driver: 384.81\nsymbols_missing: [nvmlDeviceGetFieldValues, nvmlDeviceGetMarginTemperature, nvmlDeviceGetGpuFabricInfoV, nvmlDeviceGetSramEccErrorStatus, nvmlDeviceGetCurrentClocksEventReasons]\n"
)

// cycle takes a snapshot and holds it to the calls that a cycle may make.
func (n *node) cycle() []nvlink.Reading {
	n.t.Helper()
	if err := sim.ResetCalls(n.dir); err != nil {
		n.t.Fatal(err)
	}
	var links []nvlink.Reading
	for _, g := range n.snapshot(20 * time.Second).GPUs {
		links = append(links, g.NVLink)
		total := 0
		for _, c := range sim.CallsOn(n.dir, g.Index) {
			total += c
		}
		if total > callsPerCycle {
			n.t.Errorf("GPU %d: %d calls in a cycle: %v", g.Index, total, sim.CallsOn(n.dir, g.Index))
		}
	}
	return links
}

func TestLinksOfAnOldDriver(t *testing.T) {
	t.Parallel()
	n := newNode(t, "model: A100\ncount: 2\n"+r450+"gpus: {1: {nvlink: {3: {state: down}, 5: {replay: 4}, 6: {recovery: 5}, 11: {crc: 6}, 0: {crc: 4294967295}}}}")
	want := func(gpu, version int) nvlink.Reading {
		r := nvlink.Reading{Have: checks.Read}
		none := nvlink.BER{Have: checks.NotSupported}
		for i := range 12 {
			l := nvlink.Link{Have: checks.Read, State: nvlink.Active, Version: version, SpeedMBps: 25000, Replay: counter.Of(0), Recovery: counter.Of(0), CRC: counter.Of(0), Effective: none, Symbol: none}
			far := gpu*12 + i
			l.RemoteLink = &far
			r.Links = append(r.Links, l)
		}
		if gpu == 1 {
			r.Links[3].State, r.Links[3].SpeedMBps, r.Links[3].RemoteLink = nvlink.Inactive, 0, nil
			r.Links[5].Replay, r.Links[6].Recovery, r.Links[11].CRC, r.Links[0].CRC = counter.Of(4), counter.Of(5), counter.Of(6), counter.Of(1<<32-1)
		}
		return r
	}
	for gpu, got := range n.cycle() { // versions come with what is left of the calls
		for i := range got.Links {
			got.Links[i].Version = 0
		}
		if want := want(gpu, 0); fmt.Sprint(flat(got)) != fmt.Sprint(flat(want)) {
			t.Errorf("GPU %d:\ngot  %+v\nwant %+v", gpu, flat(got), flat(want))
		}
	}
	for range 3 {
		n.cycle()
	}
	for gpu, got := range n.cycle() {
		if want := want(gpu, 5); fmt.Sprint(flat(got)) != fmt.Sprint(flat(want)) {
			t.Errorf("GPU %d, later:\ngot  %+v\nwant %+v", gpu, flat(got), flat(want))
		}
	}
	if calls := sim.CallsOn(n.dir, 0); calls["nvmlDeviceGetNvLinkState"] != 12 || calls["nvmlDeviceGetNvLinkVersion"] != 0 || calls["nvmlDeviceGetNvLinkErrorCounter"] != 0 ||
		calls["nvmlDeviceGetFieldValues"] != 2 {
		t.Errorf("once all is known a cycle asks for states, and twice for fields: %v", calls)
	}
}

// flat is a reading without its pointers.
func flat(r nvlink.Reading) []string {
	out := []string{r.Have.String() + r.Err}
	for _, l := range r.Links {
		far := -1
		if l.RemoteLink != nil {
			far = *l.RemoteLink
		}
		l.RemoteLink = nil
		out = append(out, fmt.Sprintf("%d %+v\n", far, l))
	}
	return out
}

// Without any field there is no count either: the first link that the driver does not know ends them.
func TestLinksOfADriverWithoutFields(t *testing.T) {
	t.Parallel()
	n := newNode(t, "model: V100\ncount: 1\n"+bare+"gpus: {0: {nvlink: {2: {state: down}, 4: {replay: 7, recovery: 8, crc: 9}}}}")
	first := n.cycle()[0]
	if first.Have != checks.Read || len(first.Links) != 6 || first.Links[2].State != nvlink.Inactive || first.Links[4].State != nvlink.Active {
		t.Fatalf("%+v", first)
	}
	if _, have := first.Errors(); have == checks.Read && first.Links[5].CRC.Have != checks.Read {
		t.Error("counters that were not read are taken for known")
	}
	if f := nvlink.Judge([]nvlink.GPU{{Reading: first}}, policy.Default().NVLink)[0]; f.Verdict != checks.Pass {
		t.Errorf("links whose turn has not come: %s %q", f.Verdict, f.Reason)
	}
	n.set(0, "unreadable", "nvmlDeviceGetNvLinkErrorCounter")
	if f := nvlink.Judge([]nvlink.GPU{{Reading: n.cycle()[0]}}, policy.Default().NVLink)[0]; f.Verdict != checks.Unknown || !strings.Contains(f.Reason, "CRC counter of link ") {
		t.Errorf("links whose counters fail: %s %q", f.Verdict, f.Reason)
	}
	n.set(0, "unreadable", "")
	for range 4 {
		n.cycle()
	}
	l := n.cycle()[0].Links
	if l[4].Replay != counter.Of(7) || l[4].Recovery != counter.Of(8) || l[4].CRC != counter.Of(9) || l[5].CRC != counter.Of(0) || l[0].Version != 3 {
		t.Errorf("%+v", l)
	}
	n.set(0, "nvlink.1.replay", "70")
	turns := func() bool { return n.cycle()[0].Links[1].Replay == counter.Of(70) }
	if !slices.ContainsFunc([]int{1, 2, 3}, func(int) bool { return turns() }) {
		t.Error("link 1's turn did not come in three cycles")
	}
}

func TestLinksThatNobodyTells(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, scenario string
		want           nvlink.Reading
	}{
		{"a driver without the old call either", "model: A100\n" + r450 + "overrides: [{nodes: gpu001, symbols_missing: [nvmlDeviceGetNvLinkState]}]",
			nvlink.Reading{Have: checks.NotSupported, Err: "this driver does not tell the state of links"}},
		{"a board without links, by a driver without fields", "model: T4\n" + bare, nvlink.Reading{Have: checks.NotSupported}},
		{"a board without links", "model: T4", nvlink.Reading{Have: checks.NotSupported}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, "count: 1\n"+tt.scenario)
			for cycle := range 2 {
				if got := n.cycle()[0]; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want) {
					t.Errorf("cycle %d: got %+v, want %+v", cycle, got, tt.want)
				}
			}
			if calls := sim.CallsOn(n.dir, 0)["nvmlDeviceGetNvLinkState"]; calls != 0 {
				t.Errorf("asked again: %d", calls)
			}
		})
	}
}

// A Hopper whose driver has fields is never asked the old way.
func TestOldCallsStayUnusedWhereFieldsAre(t *testing.T) {
	t.Parallel()
	n := newNode(t, "count: 1")
	for range 2 {
		n.cycle()
		for _, name := range []string{"nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkVersion", "nvmlDeviceGetNvLinkErrorCounter"} {
			if c := sim.CallsOn(n.dir, 0)[name]; c != 0 {
				t.Errorf("%d calls of %s", c, name)
			}
		}
	}
}
