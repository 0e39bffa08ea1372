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
)

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
			return show(Parse(string(script), nil))
		case "script":
			return show(Parse(d.Input, args))
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
		r, ignored, err := Parse(script, nil)
		again, _, _ := Parse(script+"\ntrue\n#SBATCH --nodes=nonsense\n", nil) // what follows a command is not read
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
