package quota

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// The files under testdata hold examples worked out by hand; each says how. Commands:
//
//	tree                 one account a line: NAME parent=P shares=N nominal=gpu=8 borrow=… lend=… user
//	use                  one line each: NAME seconds billing [factor]
//	fade SECONDS
//	classic [damp=N] | fairtree | raw
//	fits|charge|release NAME AMOUNTS
//	available|borrows NAME [AMOUNTS]
func TestWorkedExamples(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var tree *Tree
		var ledger *Ledger
		var history *History
		find := func(d *datadriven.TestData, name string) ID {
			id, ok := tree.Find(name)
			if !ok {
				d.Fatalf(t, "no account %s", name)
			}
			return id
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			arg := func(i int) string {
				if i >= len(d.CmdArgs) {
					return ""
				}
				return d.CmdArgs[i].String()
			}
			amounts := func(i int, base Amounts) Amounts {
				a, err := ParseAmounts(strings.Trim(arg(i), "()"), base)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				return a
			}
			switch d.Cmd {
			case "tree":
				var specs []Spec
				for line := range strings.Lines(d.Input) {
					specs = append(specs, parseSpec(t, d, line))
				}
				var err error
				if tree, err = NewTree(specs); err != nil {
					return err.Error()
				}
				ledger, history = NewLedger(tree), NewHistory(tree, DefaultHalfLife)
				return ""
			case "use":
				for line := range strings.Lines(d.Input) {
					f := strings.Fields(line)
					id := find(d, f[0])
					n := []float64{0, 0, 1}
					for i, s := range f[1:] {
						n[i], _ = strconv.ParseFloat(s, 64)
					}
					history.Add(id, n[0], n[1], n[2])
				}
				return ""
			case "nodecay":
				history = NewHistory(tree, 0)
				return ""
			case "fade":
				dt, _ := strconv.ParseFloat(arg(0), 64)
				history.Fade(dt)
				return ""
			case "raw":
				return list(tree, func(id ID) string { return fmt.Sprintf("%.4f", history.Raw(id)) })
			case "classic":
				damp := 1.0
				if len(d.CmdArgs) > 0 {
					damp, _ = strconv.ParseFloat(d.CmdArgs[0].Vals[0], 64)
				}
				f := history.Classic(damp)
				return list(tree, func(id ID) string { return fmt.Sprintf("%.6f", f[id]) })
			case "fairtree":
				f := history.FairTree()
				return list(tree, func(id ID) string {
					if !tree.Spec(id).User {
						return ""
					}
					return fmt.Sprintf("%.6f", f[id])
				})
			case "available":
				return ledger.Available(find(d, arg(0))).String()
			case "fits":
				if r, ok := ledger.Fits(find(d, arg(0)), amounts(1, Amounts{})); !ok {
					return "no: " + r.String()
				}
				return "yes"
			case "borrows":
				return strconv.FormatBool(ledger.Borrows(find(d, arg(0)), amounts(1, Amounts{})))
			case "charge":
				ledger.Charge(find(d, arg(0)), amounts(1, Amounts{}))
				return fmt.Sprintf("borrowed %d", ledger.Borrowed())
			case "release":
				ledger.Release(find(d, arg(0)), amounts(1, Amounts{}))
				return fmt.Sprintf("borrowed %d", ledger.Borrowed())
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func list(tree *Tree, value func(ID) string) string {
	var b strings.Builder
	tree.visit(Root, func(id ID) {
		if v := value(id); id != Root && v != "" {
			fmt.Fprintf(&b, "%-12s %s\n", tree.Name(id), v)
		}
	})
	return b.String()
}

func parseSpec(t *testing.T, d *datadriven.TestData, line string) Spec {
	f := strings.Fields(line)
	s := Spec{Name: f[0], Shares: 1, Nominal: None(), Borrow: None(), Lend: None()}
	for _, kv := range f[1:] {
		k, v, _ := strings.Cut(kv, "=")
		var err error
		switch k {
		case "user":
			s.User = true
		case "parent":
			s.Parent = v
		case "shares":
			if v == "parent" {
				s.Shares = ShareParent
			} else {
				s.Shares, err = strconv.Atoi(v)
			}
		case "nominal":
			s.Nominal, err = ParseAmounts(v, None())
		case "borrow":
			s.Borrow, err = ParseAmounts(v, None())
		case "lend":
			s.Lend, err = ParseAmounts(v, None())
		default:
			err = fmt.Errorf("no field %s", k)
		}
		if err != nil {
			d.Fatalf(t, "%s: %v", line, err)
		}
	}
	return s
}
