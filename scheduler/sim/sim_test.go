package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
	"github.com/assay-gpu/assay/scheduler"
)

func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks", "github.com/assay-gpu/assay/scheduler")
}

// gangs is the trace that is kept in the repository: 400 jobs like Kalos's for 64 nodes, made by
// assay sim generate --profile kalos --jobs 400 --nodes 64 --load 0.9 --seed 7.
func gangs(t testing.TB) *Trace {
	t.Helper()
	text, err := os.ReadFile("testdata/gangs.csv")
	if err != nil {
		t.Fatal(err)
	}
	trace, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func mustRun(t testing.TB, trace *Trace, o Options) *Result {
	t.Helper()
	x, err := Run(trace, o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestTheKeptTraceIsWhatTheGeneratorMakes(t *testing.T) {
	p, err := FindProfile("kalos")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Generate(p, 400, 512, 0.9, 7).Write(&b); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("testdata/gangs.csv")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), kept) {
		t.Error("testdata/gangs.csv is not what the generator makes of its seed")
	}
}

// Without faults every job ends by itself, nothing is lost, and all useful work is what the trace asks.
func TestOnAHealthyFleetEveryJobRuns(t *testing.T) {
	trace := gangs(t)
	want := 0.0
	for _, j := range trace.Jobs {
		want += float64(j.Nodes*j.GPUs) * float64(j.Run)
	}
	for _, policy := range []string{"backfill", "easy", "fifo"} {
		o := DefaultOptions(Uniform(64, 8))
		o.Policy = policy
		x := mustRun(t, trace, o)
		if x.Completed != len(trace.Jobs) || x.LostHours != 0 || x.WrongHours != 0 || x.Restarts != 0 {
			t.Errorf("%s: %d of %d completed, %v GPU hours lost, %d restarts", policy, x.Completed, len(trace.Jobs), x.LostHours, x.Restarts)
		}
		if x.Goodput != 1 {
			t.Errorf("%s: goodput %v", policy, x.Goodput)
		}
		if x.Utilisation <= 0.2 || x.Utilisation > 1 {
			t.Errorf("%s: utilisation %v", policy, x.Utilisation)
		}
		// A fleet in use allows no fewer leaves than an empty one, and no placement takes fewer than it allows.
		if x.Reachable < 1 || x.Leaves < x.Reachable {
			t.Errorf("%s: leaves %v over the fewest of an empty fleet, %v over the fewest of what was free", policy, x.Leaves, x.Reachable)
		}
		if x.Split < 0 || x.Split > 1 {
			t.Errorf("%s: %v of what is free lies on nodes partly in use", policy, x.Split)
		}
	}
}

// What the policies are for: nobody passes in FIFO, so it waits longest; the same run twice is the same.
func TestPoliciesDiffer(t *testing.T) {
	trace := gangs(t)
	o := DefaultOptions(Uniform(64, 8))
	wait := map[string]float64{}
	for _, policy := range []string{"backfill", "easy", "fifo"} {
		o.Policy = policy
		wait[policy] = mustRun(t, trace, o).All.MeanWait
	}
	if wait["backfill"] >= wait["fifo"] || wait["easy"] >= wait["fifo"] {
		t.Errorf("mean waits %v: backfilling should beat first come, first served", wait)
	}
	o.Policy = "backfill"
	a, b := mustRun(t, trace, o), mustRun(t, trace, o)
	ja, _ := json.Marshal(a)
	jb, _ := json.Marshal(b)
	if !bytes.Equal(ja, jb) {
		t.Error("the same trace and seed gave two results")
	}
}

// Certificates do what they are for: with the same faults, fewer jobs die on nodes that were known bad, and less is computed
// wrongly. Rates are many times the published, so that a short trace sees
// them.
func TestGatingSavesWork(t *testing.T) {
	trace := gangs(t)
	total := map[bool]*Result{true: {}, false: {}}
	for seed := uint64(1); seed <= 3; seed++ {
		for _, gated := range []bool{false, true} {
			o := DefaultOptions(Uniform(64, 8))
			o.Faults = DefaultFaults()
			o.Faults.PerDay *= 10
			o.Faults.SDCPerDay *= 1000
			o.Checkpoint = 1800
			o.Faults.SDCCaught = 0.9
			o.Faults.BadAtDay = 0.1
			o.Faults.Interval = 3600
			o.Faults.Median = 0.02
			o.Faults.Gating, o.Seed = gated, seed
			x := mustRun(t, trace, o)
			if x.Completed+x.TimedOut+x.GivenUp != len(trace.Jobs) {
				t.Fatalf("gated %v: %d completed and %d timed out of %d", gated, x.Completed, x.TimedOut, len(trace.Jobs))
			}
			sum := total[gated]
			sum.Restarts += x.Restarts
			sum.WrongHours += x.WrongHours
			sum.LostHours += x.LostHours
			sum.ScreenedOut += x.ScreenedOut
		}
	}
	with, without := total[true], total[false]
	if with.Restarts >= without.Restarts || with.WrongHours >= without.WrongHours {
		t.Errorf("gated: %d restarts, %.0f GPU hours wrong; not gated: %d and %.0f", with.Restarts, with.WrongHours, without.Restarts, without.WrongHours)
	}
	if with.ScreenedOut == 0 || without.ScreenedOut != 0 {
		t.Errorf("screens stopped %d nodes with gating and %d without", with.ScreenedOut, without.ScreenedOut)
	}
}

// A checkpoint saves what it should: half an hour lost on average of an hour's interval, all without.
func TestCheckpointsSaveWork(t *testing.T) {
	trace := &Trace{}
	for i := range 100 {
		trace.Jobs = append(trace.Jobs, Job{ID: int64(i + 1), Submit: int64(i), Run: 86400, Nodes: 1, GPUs: 8})
	}
	lost := map[int64]float64{}
	for _, interval := range []int64{0, 600, 7200} {
		o := DefaultOptions(Uniform(64, 8))
		o.Faults = Faults{PerDay: 0.1, Median: 0.01, Sigma: 0.1}
		o.Checkpoint, o.Restart = interval, 0
		lost[interval] = mustRun(t, trace, o).LostHours
	}
	if lost[600] >= lost[7200] || lost[7200] >= lost[0] {
		t.Errorf("GPU hours lost by interval: %v", lost)
	}
}

// Two leaves of two nodes, of which the first has one free: three nodes need both, two lie best in the second.
func TestTheBoundIsOfWhatIsFree(t *testing.T) {
	trace := &Trace{Jobs: []Job{{ID: 1, Run: 100, Nodes: 1, GPUs: 8}, {ID: 2, Submit: 1, Run: 100, Nodes: 1, GPUs: 4}}}
	o := DefaultOptions(Uniform(4, 8))
	o.Leaf = 2
	r, err := newRun(trace, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ nodes, gpus, want int }{{2, 8, 1}, {3, 8, 2}, {4, 8, 2}} {
		if got := r.reachable(&Job{Nodes: x.nodes, GPUs: x.gpus}); got != x.want {
			t.Errorf("empty: %d nodes on %d leaves, want %d", x.nodes, got, x.want)
		}
	}
	if err := r.c.fleet.Start(&scheduler.Running{ID: "a", Nodes: []scheduler.Take{{Node: 0, GPUs: 0xf}}}); err != nil {
		t.Fatal(err)
	}
	if got := r.split(); got != 4 {
		t.Errorf("%v GPUs are left on a node in use, want 4", got)
	}
	for _, x := range []struct{ nodes, gpus, want int }{{2, 8, 1}, {3, 8, 2}, {2, 4, 1}, {4, 4, 2}} {
		if got := r.reachable(&Job{Nodes: x.nodes, GPUs: x.gpus}); got != x.want {
			t.Errorf("%d nodes of %d GPUs on %d leaves, want %d", x.nodes, x.gpus, got, x.want)
		}
	}
}

func TestFillingAFleet(t *testing.T) {
	var b strings.Builder
	b.WriteString("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n")
	for i := range 10 {
		fmt.Fprintf(&b, "p%d,1,1,4,1000\nq%d,1,1,1,500\n", i, i)
	}
	trace, err := Read(strings.NewReader(b.String()))
	if err != nil || !trace.FillOrder {
		t.Fatalf("%v; fill order %v", err, trace.FillOrder)
	}
	// Two nodes of 8: three jobs of 4, and eight halves on the 4 GPUs that are left, if halves share.
	f, err := Fill(trace, DefaultOptions(Uniform(2, 8)))
	if err != nil {
		t.Fatal(err)
	}
	if f.Placed != 11 || f.Allocated != 1 {
		t.Errorf("placed %d, allocated %v: want three of 4 GPUs and eight halves, on all 16 GPUs", f.Placed, f.Allocated)
	}
}

func TestReports(t *testing.T) {
	trace := gangs(t)
	o := DefaultOptions(Uniform(64, 8))
	o.Faults = DefaultFaults()
	runs := []*Result{mustRun(t, trace, o)}
	o.Faults.Gating = true
	runs = append(runs, mustRun(t, trace, o))
	var table, csv, page bytes.Buffer
	for _, err := range []error{WriteTable(&table, runs), WriteCSV(&csv, runs), WriteHTML(&page, "<gangs>", runs)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"BACKFILL, GATED", "goodput, of the time used", "wait of all, mean/p95"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, table.String())
		}
	}
	if n := strings.Count(csv.String(), "\n"); n != 1+len(runs[0].Classes)+len(runs[1].Classes)+2 {
		t.Errorf("%d lines of CSV", n)
	}
	text := page.String()
	if strings.Contains(text, "<gangs>") || strings.Contains(text, "http") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error("the page is not safe, loads something, or has no number where one should be")
	}
	if strings.Count(text, "<svg") < 10 || strings.Count(text, "<svg") != strings.Count(text, "</svg>") {
		t.Errorf("%d charts", strings.Count(text, "<svg"))
	}
}
