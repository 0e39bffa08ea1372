package sbatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler"
)

// noon is the clock of the stories.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func show(r Request, ignored []string, err error) string {
	var b strings.Builder
	g := r.Gang
	fmt.Fprintf(&b, "nodes=%d gpus=%d ranks=%d", g.Nodes, g.GPUs, g.Ranks)
	add := func(name string, v any, set bool) {
		if set {
			fmt.Fprintf(&b, " %s=%v", name, v)
		}
	}
	add("whole", g.Whole, g.Whole)
	add("limit", g.Limit, g.Limit > 0)
	add("switches", g.Switches, g.Switches > 0)
	add("wait", g.SwitchWait, g.SwitchWait > 0)
	add("segment", g.Segment, g.Segment > 0)
	add("level", g.Level, g.Level != checks.NoLevel)
	add("age", g.MaxAge, g.MaxAge > 0)
	add("through", g.Through, g.Through)
	add("name", r.Name, r.Name != "")
	add("partition", r.Partition, r.Partition != "")
	add("account", r.Account, r.Account != "")
	add("qos", r.QOS, r.QOS != "")
	add("dir", r.Dir, r.Dir != "")
	add("output", r.Output, r.Output != "")
	add("after", r.After, r.After != "")
	add("begin", r.Begin.Format(time.RFC3339), !r.Begin.IsZero())
	add("deadline", r.Deadline.Format(time.RFC3339), !r.Deadline.IsZero())
	add("reservation", r.Reservation, r.Reservation != "")
	add("array", r.Array, len(r.Array) > 0)
	add("throttle", r.Throttle, r.Throttle > 0)
	add("near", fmt.Sprintf("%s:%d", g.Near, g.Height), g.Near != scheduler.Closest)
	add("group", g.Group, g.Group > 0)
	add("joined", g.Joined, g.Joined > 0)
	add("per_leaf", g.PerLeaf, g.PerLeaf > 0)
	add("spread", g.Spread, g.Spread)
	add("same_grade", g.SameGrade, g.SameGrade)
	add("requeue", r.Requeue, r.Requeue)
	add("hold", r.Hold, r.Hold)
	add("nice", r.Nice, r.Nice != 0)
	add("export", strings.Join(r.Export, ","), len(r.Export) > 0)
	add("export_all", r.ExportAll, !r.ExportAll)
	b.WriteString("\n")
	if len(ignored) > 0 {
		fmt.Fprintf(&b, "ignored: %s\n", strings.Join(ignored, " "))
	}
	var faults *FaultsError
	if errors.As(err, &faults) {
		b.Reset()
		for _, f := range faults.Faults {
			b.WriteString(f.String() + "\n")
		}
	}
	return b.String()
}

// TestStories: the input is a script; args are the command line's options.
func TestStories(t *testing.T) {
	datadriven.RunTest(t, "testdata/stories", func(t *testing.T, d *datadriven.TestData) string {
		var args []string
		for _, a := range d.CmdArgs {
			args = append(args, a.String())
		}
		switch d.Cmd {
		case "file":
			script, err := os.ReadFile(filepath.Join("testdata", d.CmdArgs[0].Key))
			if err != nil {
				t.Fatal(err)
			}
			return show(Parse(string(script), nil, noon))
		case "script":
			return show(Parse(d.Input, args, noon))
		}
		t.Fatalf("%s: no such command", d.Pos)
		return ""
	})
}

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Minute, "1:30": 90 * time.Second, "01:30:00": 90 * time.Minute, "2-12": 60 * time.Hour, "7-00:00:00": 168 * time.Hour, "1-2:3": 26*time.Hour + 3*time.Minute,
	} {
		if got, err := ParseLimit(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-", "1:", ":1", "1-", "1:2:3:4", "-5", "1.5", "1-2:3:4:5", "99999999999"} {
		if got, err := ParseLimit(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.sbatch")
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(script))
	}
	f.Add("#SBATCH -N4 --gres=gpu:h100:8 -t 1-00 --certified=soak:7d:through # end\n")
	f.Fuzz(func(t *testing.T, script string) {
		r, ignored, err := Parse(script, nil, noon)
		again, _, _ := Parse(script+"\ntrue\n#SBATCH --nodes=nonsense\n", nil, noon) // what follows a command is not read
		if err == nil {
			if err := r.Gang.Valid(); err != nil && r.Gang.ID != "" {
				t.Fatalf("%q: taken, and makes %v", script, err)
			}
			if show(r, ignored, nil) != show(again, ignored, nil) && strings.HasSuffix(script, "\n") {
				t.Fatalf("%q: options after the first command changed it", script)
			}
		}
	})
}

func TestParseArray(t *testing.T) {
	for text, want := range map[string]string{
		"0-3": "[0 1 2 3] 0", "1,3,5-7": "[1 3 5 6 7] 0", "0-100:25": "[0 25 50 75 100] 0", "0-2%8": "[0 1 2] 8", "5,5,4": "[4 5] 0",
	} {
		tasks, throttle, err := ParseArray(text)
		if got := fmt.Sprint(tasks, throttle); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "3-1", "1-", "-1", "1:2", "1-4:0", "1%0", "1%", "0-10000", "1-4:x", "0-9,", "4000001", "0-9999,20000"} {
		if tasks, _, err := ParseArray(text); err == nil {
			t.Errorf("%q was read as %d tasks", text, len(tasks))
		}
	}
}

func TestParseWhen(t *testing.T) {
	here := noon.In(time.FixedZone("here", 2*3600)) // 14:00
	for text, want := range map[string]string{
		"2026-12-24T08:00": "2026-12-24T08:00:00+02:00", "2026-12-24T08:00:00Z": "2026-12-24T08:00:00Z", "15:30": "2026-11-30T15:30:00+02:00", "13:00:05": "2026-12-01T13:00:05+02:00",
		"now+30": "2026-11-30T14:00:30+02:00", "now+2hours": "2026-11-30T16:00:00+02:00", "now+1day": "2026-12-01T14:00:00+02:00", "tomorrow": "2026-12-01T00:00:00+02:00",
		"teatime": "2026-11-30T16:00:00+02:00", "noon": "2026-12-01T12:00:00+02:00", "midnight": "2026-12-01T00:00:00+02:00",
	} {
		if got, err := ParseWhen(text, here); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: %s, %v, want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	for _, text := range []string{"", "soon", "now+", "now+x", "now+1lightyear", "25:00", "now-1hour"} {
		if got, err := ParseWhen(text, here); err == nil {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

func FuzzParseArray(f *testing.F) {
	for _, s := range []string{"0-15", "1,3,5-7%2", "0-100:10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tasks, throttle, err := ParseArray(s)
		if err != nil {
			return
		}
		if len(tasks) == 0 || len(tasks) > MaxTasks || throttle < 0 {
			t.Fatalf("%q: %d tasks, %d at once", s, len(tasks), throttle)
		}
		for i := 1; i < len(tasks); i++ {
			if tasks[i] <= tasks[i-1] {
				t.Fatalf("%q: tasks %v", s, tasks)
			}
		}
	})
}
