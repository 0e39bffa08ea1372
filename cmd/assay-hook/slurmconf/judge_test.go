package slurmconf

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
	"github.com/cockroachdb/datadriven"
)

func TestImports(t *testing.T) {
	importrules.Pure(t)
	importrules.Check(t, map[string]string{
		"fmt":  "it brings in os, whose start costs the hook a quarter of its time",
		"time": "its start costs the hook",
		"sync": "nothing here is shared",
	})
}

// node is a node's files: path to what is known of it.
type node map[string]File

func (n node) Stat(p string) (File, bool) { f, ok := n[p]; return f, ok }

func (n node) Glob(pattern string) []string {
	var found []string
	for p := range n {
		if ok, _ := path.Match(pattern, p); ok {
			found = append(found, p)
		}
	}
	slices.Sort(found)
	return found
}

// TestJudge runs testdata. "conf NAME" stores a file; "node" lists scripts, one a line: path and any of exec, loose,
// dir, ours; "judge version=V" prints all findings on slurm.conf, "judge only=KEY" those on one setting.
func TestJudge(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		confs, scripts := map[string]string{}, node{}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "conf":
				confs[d.CmdArgs[0].Key] = d.Input
				return ""
			case "node":
				scripts = node{}
				for line := range strings.Lines(d.Input) {
					words := strings.Fields(line)
					scripts[words[0]] = File{
						Regular: !slices.Contains(words, "dir"), Executable: slices.Contains(words, "exec"),
						Loose: slices.Contains(words, "loose"), Ours: slices.Contains(words, "ours"),
					}
				}
				return ""
			case "judge", "parse":
				name, version, only := "/etc/slurm/slurm.conf", "22.05.8", ""
				d.MaybeScanArgs(t, "file", &name)
				d.MaybeScanArgs(t, "version", &version)
				d.MaybeScanArgs(t, "only", &only)
				if version == "unknown" {
					version = ""
				}
				c := Parse(name, func(p string) ([]byte, error) {
					if text, ok := confs[p]; ok {
						return []byte(text), nil
					}
					return nil, fs.ErrNotExist
				})
				var b strings.Builder
				if d.Cmd == "parse" {
					for _, v := range c.Values {
						fmt.Fprintf(&b, "%s %s=%q\n", v.Where(), v.Key, v.Text)
					}
					for _, p := range c.Problems {
						fmt.Fprintf(&b, "%s:%d problem: %s\n", p.File, p.Line, p.Text)
					}
					return b.String()
				}
				fs := Judge(c, version, scripts)
				for _, f := range fs {
					if only != "" && f.What != only {
						continue
					}
					fmt.Fprintf(&b, "%s %s [%s] %s\n", f.Level, f.What, f.Where, f.Why)
					if f.Do != "" {
						fmt.Fprintf(&b, "   do: %s\n", f.Do)
					}
				}
				if only == "" {
					fmt.Fprintf(&b, "worst: %s\n", Worst(fs))
				}
				return b.String()
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// Limits that are off by one second must change a verdict.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		key   string
		value int
		level Level
	}{
		{"PrologEpilogTimeout", 24, Fault}, {"PrologEpilogTimeout", 25, OK}, {"PrologTimeout", 24, Fault}, {"EpilogTimeout", 25, OK},
		{"BatchStartTimeout", 24, Warning}, {"BatchStartTimeout", 25, OK}, {"MessageTimeout", 22, Warning}, {"MessageTimeout", 23, OK},
		{"ResumeTimeout", 1799, Fault}, {"ResumeTimeout", 1800, OK},
	} {
		c := Config{Values: []Value{{Key: tt.key, Text: fmt.Sprint(tt.value), File: "slurm.conf", Line: 1}}}
		found := false
		for _, f := range Judge(c, "22.05.8", node{}) {
			if f.What == tt.key && f.Where == "slurm.conf:1" {
				found = true
				if f.Level != tt.level {
					t.Errorf("%s=%d: %v, want %v", tt.key, tt.value, f.Level, tt.level)
				}
			}
		}
		if !found {
			t.Errorf("%s=%d: no finding", tt.key, tt.value)
		}
	}
}

func TestOlder(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"22.05.8", "23.02", true}, {"23.02", "23.02", false}, {"23.02.1", "23.02", false}, {"24.11", "24.05", false}, {"9.08", "23.02", true}} {
		if got := older(tt.a, tt.b); got != tt.want {
			t.Errorf("older(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}

// Whatever the file holds, Parse ends, places every setting on a line that exists, and Judge ends.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"PrologFlags=Alloc\n", "Prolog = \"/a b/*\" Epilog=/c # x\n", "Include x\n", "include %c.conf\nClusterName=b\n", "A=\\\nB=c\\\n", "\\#=\\",
		"NodeName=n[1-3] State=DOWN Prolog=/x\n", "ResumeTimeout=99999999999999999999\n", "=\n==\n\"", "Include slurm.conf\nInclude slurm.conf\n", "Prolog=/a[\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := Parse("/etc/slurm/slurm.conf", func(p string) ([]byte, error) {
			if p == "/etc/slurm/slurm.conf" {
				return []byte(s), nil
			}
			return nil, fs.ErrNotExist
		})
		lines := strings.Count(s, "\n") + 1
		for _, v := range c.Values {
			if v.Key == "" || v.Text == "" && !strings.Contains(s, `""`) || v.Line < 1 || v.Line > lines {
				t.Fatalf("Parse(%q) has %+v", s, v)
			}
		}
		for _, f := range Judge(c, "22.05.8", node{"/a": {Regular: true}}) {
			if f.What == "" || f.Why == "" || f.Level != OK && f.Do == "" {
				t.Fatalf("Judge of %q has %+v", s, f)
			}
		}
	})
}
