package dcgm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// Each case gives the diagnostic's output, by file or in the case itself, and shows the findings, one a line:
//
//	diag [file=NAME] [exit=N] [known=SERIAL,…]
func TestDiag(t *testing.T) {
	datadriven.Walk(t, "testdata/diag", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			text, p := d.Input, policy.Default().DCGM
			var exit *int
			var known []checks.GPU
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "file":
					b, err := os.ReadFile(filepath.Join("testdata", "dcgm", a.Vals[0]))
					if err != nil {
						t.Fatal(err)
					}
					text = string(b)
				case "exit":
					exit = new(int)
					a.Scan(t, 0, exit)
				case "known":
					for i, s := range a.Vals {
						known = append(known, checks.GPU{UUID: fmt.Sprintf("GPU-%s", s), Serial: s, Index: len(a.Vals) - 1 - i})
					}
				case "action":
					var code int
					a.Scan(t, 0, &code)
					p.Actions = map[int]string{code: a.Vals[1]}
				default:
					t.Fatalf("%s: %s?", d.Pos, a.Key)
				}
			}
			if d.Cmd != "diag" {
				t.Fatalf("%s: %s?", d.Pos, d.Cmd)
			}
			r := Parse(text)
			r.Exit = exit
			return show(Judge("gpu001", known, r, p))
		})
	})
}

func show(fs []checks.Finding) string {
	var b strings.Builder
	for _, f := range fs {
		b.WriteString(line(f) + "\n")
	}
	fmt.Fprintf(&b, "%s\n", checks.FoldFindings(fs))
	return b.String()
}

func line(f checks.Finding) string {
	who := string(f.Subject.Kind)
	if f.Subject.GPUIndex != nil {
		who = fmt.Sprintf("gpu %d", *f.Subject.GPUIndex)
	}
	if f.Subject.GPUUUID != "" {
		who += " " + f.Subject.GPUUUID
	}
	what := fmt.Sprintf("%s %s", f.Verdict, f.Action)
	if f.Hard {
		what += " hard"
	}
	if f.Code != 0 {
		what += fmt.Sprintf(" code=%d", f.Code)
	}
	if f.Count > 1 {
		what += fmt.Sprintf(" count=%d", f.Count)
	}
	return fmt.Sprintf("%s: %s: %s", who, what, f.Reason)
}
