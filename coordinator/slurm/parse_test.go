package slurm

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func utc(s string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05", s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestParseNodes(t *testing.T) {
	got, err := ParseNodes(read(t, "nodes-22.05.txt"))
	if err != nil {
		t.Fatal(err)
	}
	boot, started := utc("2026-11-29T19:08:46"), utc("2026-11-29T19:22:23")
	want := []Node{
		{Name: "gpu1", State: "IDLE", BootTime: boot, SlurmdStart: started, GPUs: 8, Partitions: []string{"gpu"}},
		{Name: "gpu2", State: "MIXED", Flags: []string{"DRAIN"}, Reason: `assay:Q-7F3K xid 79 GPU 3 "off" the [bus] State=UP`, ReasonUser: "root",
			ReasonTime: utc("2026-11-29T19:37:36"), BootTime: boot, SlurmdStart: started, GPUs: 8, CPUAlloc: 2, Partitions: []string{"gpu", "debug"}},
		{Name: "gpu3", State: "DOWN", Flags: []string{"DRAIN", "REBOOT_ISSUED"}, Reason: "assay:Q-7F3K xid 79 : reboot issued", ReasonUser: "root",
			ReasonTime: utc("2026-11-29T19:41:26"), BootTime: boot, SlurmdStart: started, GPUs: 8, Partitions: []string{"gpu"}},
		{Name: "gpu4", State: "IDLE", Flags: []string{"DRAIN", "INVALID_REG"}, Reason: "gres/gpu count reported lower than configured (8 < 9)", ReasonUser: "root",
			ReasonTime: utc("2026-11-29T19:43:06"), BootTime: utc("2026-11-29T19:08:45"), SlurmdStart: started, GPUs: 9, Partitions: []string{"gpu"}},
		{Name: "gpu5", State: "IDLE", Flags: []string{"NOT_RESPONDING"}},
	}
	if len(got) != len(want) {
		t.Fatalf("%d nodes, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
}

func TestNodeQuestions(t *testing.T) {
	for _, tt := range []struct {
		state                string
		cpus                 int
		drained, empty, away bool
	}{
		{"IDLE", 0, false, true, false},
		{"IDLE+DRAIN", 0, true, true, false},
		{"MIXED+DRAIN", 1, true, false, false},
		{"ALLOCATED", 8, false, false, false},
		{"IDLE+COMPLETING+DRAIN", 0, true, false, false},
		{"IDLE+FAIL", 0, true, true, false},
		{"DOWN+DRAIN+REBOOT_ISSUED", 0, true, true, true},
		{"IDLE+REBOOT_REQUESTED", 0, false, true, false},
		{"IDLE+POWERED_DOWN", 0, false, true, true},
		{"IDLE", 3, false, false, false},
	} {
		n := Node{CPUAlloc: tt.cpus}
		n.State, n.Flags = ParseState(tt.state)
		if n.Drained() != tt.drained || n.Empty() != tt.empty || n.Away() != tt.away {
			t.Errorf("%s with %d CPUs taken: drained %v empty %v away %v", tt.state, tt.cpus, n.Drained(), n.Empty(), n.Away())
		}
		if StateText(n) != tt.state {
			t.Errorf("%s came back %s", tt.state, StateText(n))
		}
	}
}

func TestParseState(t *testing.T) {
	for _, tt := range []struct{ in, base, flags string }{
		{"IDLE", "IDLE", ""},
		{"DOWN*+DRAIN", "DOWN", "NOT_RESPONDING DRAIN"},
		{"DOWN+DRAIN+REBOOT_ISSUED", "DOWN", "DRAIN REBOOT_ISSUED"},
		{"drng@", "ALLOCATED", "DRAIN REBOOT_REQUESTED"},
		{"drained*", "IDLE", "DRAIN NOT_RESPONDING"},
		{"drain", "", "DRAIN"},
		{"mix-", "MIXED", "PLANNED"},
		{"idle~", "IDLE", "POWERED_DOWN"},
		{"idle#", "IDLE", "POWERING_UP"},
		{"idle!", "IDLE", "POWER_DOWN"},
		{"idle%", "IDLE", "POWERING_DOWN"},
		{"idle$", "IDLE", "MAINTENANCE"},
		{"reboot^", "", "REBOOT_ISSUED"},
		{"boot", "", "REBOOT_ISSUED"},
		{"inval", "", "INVALID_REG"},
		{"fail*", "", "FAIL NOT_RESPONDING"},
		{"failg", "ALLOCATED", "FAIL"},
		{"comp", "", "COMPLETING"},
		{"maint", "", "MAINTENANCE"},
		{"resv", "", "RESERVED"},
		{"plnd", "", "PLANNED"},
		{"MIXED+CLOUD+DRAIN+DRAIN", "MIXED", "CLOUD DRAIN"},
		{"IDLE+SOMETHING_NEW", "IDLE", "SOMETHING_NEW"},
		{"*", "", "NOT_RESPONDING"},
	} {
		base, flags := ParseState(tt.in)
		if base != tt.base || strings.Join(flags, " ") != tt.flags {
			t.Errorf("ParseState(%q) = %q %q, want %q %q", tt.in, base, flags, tt.base, tt.flags)
		}
	}
}

func TestParseGPUs(t *testing.T) {
	for in, want := range map[string]int{
		"gpu:h100:8": 8, "gpu:8": 8, "gpu:h100:8(S:0-1)": 8, "gpu": 1, "gpu:a100": 1, "gpu:h100:4(S:0),gpu:h100:4(S:1),nic:2": 8,
		"gpu:2K": 2048, "(null)": 0, "": 0, "nic:8": 0, "gpu_mem:80": 0, "shard:16,gpu:2": 2, "gpu:4(S:0,2),gpu:1": 5, "gpu:": 1, "gpu:1g.10gb:7(S:0)": 7,
	} {
		if got := ParseGPUs(in); got != want {
			t.Errorf("ParseGPUs(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestParseJobs(t *testing.T) {
	got, err := ParseJobs(read(t, "jobs.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 7 {
		t.Fatalf("%d jobs", len(got))
	}
	if want := (Job{ID: "1", State: "RUNNING", Reason: "None", Nodes: []string{"gpu1", "gpu2"}, NumNodes: 2, Priority: 4294901759, Requeue: true, User: "root"}); !reflect.DeepEqual(got[3], want) {
		t.Errorf("got %+v, want %+v", got[3], want)
	}
	if j := got[4]; j.Requeue || j.Restarts != 2 || !j.OnNodes() {
		t.Errorf("completing job: %+v", j)
	}
	if j := got[6]; j.NumNodes != 4 || j.User != "usera" {
		t.Errorf("job that takes a range of nodes: %+v", j)
	}
	var held []string
	for _, j := range got {
		if j.HeldByLaunchFailure() {
			held = append(held, j.ID)
		}
	}
	if !reflect.DeepEqual(held, []string{"10"}) {
		t.Errorf("held by a failed launch: %q, want 10 alone", held)
	}
	on := ByNode(got)
	if len(on["gpu1"]) != 2 || len(on["gpu4"]) != 1 || len(on) != 4 {
		t.Errorf("jobs by node: %v", on)
	}
}

func TestHeldSignature(t *testing.T) {
	held := Job{State: "PENDING", Restarts: 1, Reason: "launch_failed_requeued_held"} // as scontrol writes it
	if !held.HeldByLaunchFailure() {
		t.Error("not recognised")
	}
	for name, change := range map[string]func(*Job){
		"released":        func(j *Job) { j.Priority = 1 },
		"never started":   func(j *Job) { j.Restarts = 0 },
		"held by admin":   func(j *Job) { j.Reason = "JobHeldAdmin" },
		"held by user":    func(j *Job) { j.Reason = "JobHeldUser" },
		"running":         func(j *Job) { j.State = "RUNNING" },
		"another failure": func(j *Job) { j.Reason = "launch failed requeued" },
	} {
		j := held
		change(&j)
		if j.HeldByLaunchFailure() {
			t.Errorf("%s: taken for a launch failure's hold", name)
		}
	}
}

func TestParseFaults(t *testing.T) {
	for name, err := range map[string]error{
		"node without state":    second(ParseNodes("NodeName=a Gres=gpu:8\n")),
		"node without name":     second(ParseNodes("garbage\n")),
		"job with too few":      second(ParseJobs("1|RUNNING\n")),
		"job with a bad number": second(ParseJobs("x|RUNNING|a|1|1|0|1|u|None|\n")),
		"job with bad nodes":    second(ParseJobs("1|RUNNING|a[|1|1|0|1|u|None|\n")),
		"job with bad count":    second(ParseJobs("1|RUNNING|a|?|1|0|1|u|None|\n")),
		"job with bad priority": second(ParseJobs("1|RUNNING|a|1|?|0|1|u|None|\n")),
		"job with bad restarts": second(ParseJobs("1|RUNNING|a|1|1|?|1|u|None|\n")),
		"leaf with bad nodes":   second(ParseLeaves("SwitchName=s Level=0 Nodes=a[1-\n")),
		"empty configuration":   second(ParseSettings("")),
	} {
		var fe *FormatError
		if !errors.As(err, &fe) || fe.Hint() == "" || fe.Msg == "" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestParseLeaves(t *testing.T) {
	got, err := ParseLeaves(read(t, "topology.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 8 || got["gpu4"] != "leaf1" || got["gpu5"] != "leaf2" || got["login"] != "leaf2" {
		t.Errorf("leaves: %v", got)
	}
	if none, err := ParseLeaves("\n"); err != nil || len(none) != 0 {
		t.Errorf("no topology: %v %v", none, err)
	}
}

func TestParseSettings(t *testing.T) {
	got, err := ParseSettings(read(t, "config-22.05.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Version: "22.05.8", ClusterName: "t", ResumeTimeout: MinResumeTimeout, SlurmdTimeout: time.Minute, MessageTimeout: 10 * time.Second,
		PrologFlags: []string{"Alloc"}, SchedulerParameters: []string{"bf_interval=1", "sched_interval=1", "sched_min_interval=0", "batch_sched_delay=0"},
		Prolog: "/etc/slurm/prolog", Epilog: "/etc/slurm/epilog", RebootProgram: "/etc/slurm/reboot", ReturnToService: 2, TopologyPlugin: "topology/tree", SlurmUser: "root",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !got.HoldsOnPrologFail() || (Settings{SchedulerParameters: []string{"nohold_on_prolog_fail"}}).HoldsOnPrologFail() {
		t.Error("nohold_on_prolog_fail misread")
	}
}

func TestCleanReason(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"as it should be", "assay:Q-7F3K xid 79 GPU 3 off the bus", "assay:Q-7F3K xid 79 GPU 3 off the bus"},
		{"quotes go", `"a" 'b' ` + "`c` \\d", "a b c d"},
		{"lines become spaces", "a\nb\r\n\tc", "a b c"},
		{"control bytes", "a\x00b\x1b[31mc", "a b (31mc"},
		{"the tail Slurm adds cannot be written", "x [root@2026-01-01T00:00:00]", "x (root@2026-01-01T00:00:00)"},
		{"another field cannot be written", "x State=IDLE", "x State:IDLE"},
		{"not UTF-8", "a\xff\xfeb", "ab"},
		{"letters of other scripts stay", "lüfter 3 défaut", "lüfter 3 défaut"},
		{"nothing", " \n ", ""},
		{"long text is cut at a word", strings.Repeat("abc ", 100), strings.TrimSpace(strings.Repeat("abc ", 50))},
		{"a long word is cut at a letter", strings.Repeat("ü", 200), strings.Repeat("ü", 100)},
	} {
		if got := CleanReason(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if again := CleanReason(CleanReason(tt.in)); again != tt.want {
			t.Errorf("%s: cleaned twice: %q", tt.name, again)
		}
	}
}

func TestBareReason(t *testing.T) {
	for in, want := range map[string]string{
		"assay:Q-1 x":                                   "assay:Q-1 x",
		"assay:Q-1 x : reboot issued":                   "assay:Q-1 x",
		"assay:Q-1 x : reboot issued : reboot complete": "assay:Q-1 x",
		"assay:Q-1 x : reboot requested":                "assay:Q-1 x",
		"assay:Q-1 x : reboot timed out":                "assay:Q-1 x",
		"reboot issued":                                 "reboot issued",
		"needs a reboot":                                "needs a reboot",
		"prereboot issued":                              "prereboot issued",
		"":                                              "",
	} {
		if got := BareReason(in); got != want {
			t.Errorf("BareReason(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestIsSlurmReason(t *testing.T) {
	for _, r := range []string{
		"Prolog error", "Epilog error", "Kill task failed", "Not responding", "Node unexpectedly rebooted", "Duplicate jobid", "Job env setup error",
		"batch job complete failure", "gres/gpu count reported lower than configured (3 < 4)", "Low RealMemory (reported:1000 < 100.00% of configured:2000)",
		"Low RealMemory", "Low socket*core*thread count, Low CPUs", "Reboot ASAP", "Reboot ASAP : reboot issued", "reboot issued",
	} {
		if !IsSlurmReason(r) {
			t.Errorf("%q is Slurm's own", r)
		}
	}
	for _, r := range []string{"", "assay:Q-7F3K xid 79", "Prolog error on rack 3, ask Ann", "prolog error?", "bad fan", "Kill task failed again", "gres/gpu is broken"} {
		if IsSlurmReason(r) {
			t.Errorf("%q is a person's", r)
		}
	}
}

func FuzzParseNodes(f *testing.F) {
	for line := range strings.Lines(read(f, "nodes-22.05.txt")) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, s string) {
		nodes, err := ParseNodes(s)
		if err != nil {
			return
		}
		for _, n := range nodes {
			if n.Name == "" || n.GPUs < 0 {
				t.Fatalf("%q gave %+v", s, n)
			}
			base, flags := ParseState(StateText(n))
			if base != n.State || !reflect.DeepEqual(flags, n.Flags) {
				t.Fatalf("state %q %q came back %q %q", n.State, n.Flags, base, flags)
			}
		}
	})
}

func FuzzParseJobs(f *testing.F) {
	f.Add(read(f, "jobs.txt"))
	f.Fuzz(func(t *testing.T, s string) {
		jobs, err := ParseJobs(s)
		if err != nil {
			return
		}
		for _, j := range jobs {
			if !jobID(j.ID) || j.HeldByLaunchFailure() && (j.Priority != 0 || j.Restarts < 1 || !strings.HasPrefix(strings.ToLower(j.Reason), "launch")) {
				t.Fatalf("%q gave %+v", s, j)
			}
		}
	})
}

func FuzzParseLeaves(f *testing.F) {
	f.Add(read(f, "topology.txt"))
	f.Fuzz(func(t *testing.T, s string) {
		leaves, err := ParseLeaves(s)
		if err == nil {
			for n, leaf := range leaves {
				if n == "" || leaf == "" {
					t.Fatalf("%q gave %q under %q", s, n, leaf)
				}
			}
		}
	})
}

func FuzzParseSettings(f *testing.F) {
	f.Add(read(f, "config-22.05.txt"))
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseSettings(s)
		if err == nil && (got.Version == "" || got.ResumeTimeout < 0) {
			t.Fatalf("%q gave %+v", s, got)
		}
	})
}

// FuzzReason checks that a cleaned reason survives Slurm's display and never reads as another field.
func FuzzReason(f *testing.F) {
	f.Add("assay:Q-7F3K xid 79 GPU 3 off the bus", "root")
	f.Add("x [root@2026-01-01T00:00:00] State=IDLE", "ann")
	f.Add("a Comment=b", "ann")
	f.Fuzz(func(t *testing.T, reason, user string) {
		clean := CleanReason(reason)
		if len(clean) > maxReason || strings.ContainsAny(clean, "\"'\n\r[]") {
			t.Fatalf("%q cleaned to %q", reason, clean)
		}
		if again := CleanReason(clean); again != clean {
			t.Fatalf("%q cleaned to %q, then to %q", reason, clean, again)
		}
		if clean == "" {
			return
		}
		nodes, err := ParseNodes("NodeName=a State=IDLE+DRAIN Reason=" + clean + " [ann@2026-01-01T00:00:00]\n")
		if err != nil || len(nodes) != 1 || nodes[0].Reason != clean || nodes[0].ReasonUser != "ann" {
			t.Fatalf("%q shown as %+v, %v", clean, nodes, err)
		}
	})
}
