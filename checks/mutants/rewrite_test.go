package mutants

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A mutant is one change to a package's source. It is in the built test binary and takes effect when the environment
// variable ASSAY_MUTANT holds its number.
type mutant struct {
	number int
	what   string // for people: place and change
}

// A rewriter turns a package's source into the same source with mutants in it.
type rewriter struct {
	dir     string // the package's folder
	name    string // the package's name
	step    string // what one unit is for values of 64 bits: 1, or a second for durations
	files   map[string]*file
	mutants []mutant
	targets map[string]int // points found, by threshold
}

type file struct {
	text  []byte
	fset  *token.FileSet
	ast   *ast.File
	edits []edit
	tail  string // appended
}

type edit struct {
	from, to int // bytes
	text     string
}

func newRewriter(dir, step string) (*rewriter, error) {
	r := &rewriter{dir: dir, step: step, files: map[string]*file{}, targets: map[string]int{}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if strings.HasSuffix(n, "_test.go") {
			continue
		}
		text, err := os.ReadFile(n)
		if err != nil {
			return nil, err
		}
		f := &file{text: text, fset: token.NewFileSet()}
		if f.ast, err = parser.ParseFile(f.fset, n, text, 0); err != nil {
			return nil, err
		}
		r.name = f.ast.Name.Name
		r.files[n] = f
	}
	if len(r.files) == 0 {
		return nil, fmt.Errorf("%s: no Go files", dir)
	}
	return r, nil
}

func (f *file) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *file) source(n ast.Node) string { return string(f.text[f.offset(n.Pos()):f.offset(n.End())]) }

func (f *file) replace(n ast.Node, text string) {
	f.edits = append(f.edits, edit{f.offset(n.Pos()), f.offset(n.End()), text})
}

func (r *rewriter) add(f *file, at token.Pos, format string, args ...any) int {
	n := len(r.mutants) + 1
	p := f.fset.Position(at)
	place := fmt.Sprintf("%s:%d: ", filepath.Join(filepath.Base(r.dir), filepath.Base(p.Filename)), p.Line)
	r.mutants = append(r.mutants, mutant{n, place + fmt.Sprintf(format, args...)})
	return n
}

// constant makes mutants of a Judge that says one verdict whatever it read. All else of its findings stays as it was, so
// that only a test that looks at the verdict can tell.
func (r *rewriter) constant(judge string) error {
	for _, f := range r.files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || fn.Name.Name != judge {
				continue
			}
			f.replace(fn.Name, "mutantOriginal"+judge)
			var args []string
			for _, p := range fn.Type.Params.List {
				for _, n := range p.Names {
					args = append(args, n.Name)
				}
			}
			call := fmt.Sprintf("mutantOriginal%s(%s)", judge, strings.Join(args, ", "))
			first := len(r.mutants) + 1
			for _, v := range []string{"Unknown", "Pass", "Fail"} {
				r.add(f, fn.Pos(), "%s always says %s", judge, v)
			}
			body := "f := " + call + "\n\tf.Verdict = mutantVerdict(%d, f.Verdict)\n\treturn f"
			if _, list := fn.Type.Results.List[0].Type.(*ast.ArrayType); list {
				body = "fs := " + call + "\n\tfor i := range fs {\n\t\tfs[i].Verdict = mutantVerdict(%d, fs[i].Verdict)\n\t}\n\treturn fs"
			}
			f.tail += fmt.Sprintf("\nfunc %s%s {\n\t"+body+"\n}\n", judge, strings.TrimPrefix(f.source(fn.Type), "func "+judge), first)
			return nil
		}
	}
	return fmt.Errorf("%s: no func %s", r.dir, judge)
}

// threshold makes two mutants, one unit more and one less, of every place where expr is compared, assigned or passed on
// as a limit; of a truth value, one mutant that is its contrary. Places that only print it are left alone.
func (r *rewriter) threshold(expr string) {
	for _, name := range sortedKeys(r.files) {
		f := r.files[name]
		printed := map[ast.Node]bool{}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr: // what goes into a call is printed, but for the calls that compare
				if id, ok := n.Fun.(*ast.SelectorExpr); ok && id.Sel.Name == "near" {
					return true
				}
				for _, a := range n.Args {
					printed[a] = true
				}
			case *ast.BinaryExpr, *ast.AssignStmt, *ast.IfStmt, *ast.KeyValueExpr:
				for _, x := range operands(n) {
					if f.source(x) == expr && !printed[x] {
						r.shift(f, x, expr)
					}
				}
			}
			return true
		})
		// near(i, j, limit) compares its last argument.
		ast.Inspect(f.ast, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || len(c.Args) != 3 {
				return true
			}
			if id, ok := c.Fun.(*ast.SelectorExpr); ok && id.Sel.Name == "near" && f.source(c.Args[2]) == expr {
				r.shift(f, c.Args[2], expr)
			}
			return true
		})
	}
}

func operands(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return []ast.Expr{n.X, n.Y}
	case *ast.AssignStmt:
		return n.Rhs
	case *ast.IfStmt:
		return []ast.Expr{n.Cond}
	case *ast.KeyValueExpr:
		return []ast.Expr{n.Value}
	}
	return nil
}

func (r *rewriter) shift(f *file, x ast.Expr, expr string) {
	r.targets[expr]++
	n := r.add(f, x.Pos(), "%s is one unit more, or the contrary", expr)
	r.add(f, x.Pos(), "%s is one unit less, or the contrary", expr)
	f.replace(x, fmt.Sprintf("mutantShift(%d, %s)", n, expr))
}

// write puts the rewritten files into out and returns the overlay that stands them in the package's place.
func (r *rewriter) write(out string) (map[string]string, error) {
	overlay := map[string]string{}
	for _, name := range sortedKeys(r.files) {
		f := r.files[name]
		if len(f.edits) == 0 && f.tail == "" {
			continue
		}
		slices.SortFunc(f.edits, func(a, b edit) int { return cmp.Compare(b.from, a.from) })
		text := string(f.text)
		for _, e := range f.edits {
			text = text[:e.from] + e.text + text[e.to:]
		}
		to := filepath.Join(out, filepath.Base(name))
		if err := os.WriteFile(to, []byte(text+f.tail), 0o644); err != nil {
			return nil, err
		}
		overlay[name] = to
	}
	helper := filepath.Join(out, "zz_mutant.go")
	text := strings.NewReplacer("PACKAGE", r.name, "STEP", r.step).Replace(helperSource)
	if strings.HasSuffix(r.dir, "policy") { // it has no findings, and knows no verdicts
		text, _, _ = strings.Cut(text, "// mutantVerdict")
		text = strings.Replace(text, "\t\"github.com/assay-gpu/assay/checks\"\n", "", 1)
	} else if r.name == "checks" {
		text = strings.ReplaceAll(strings.Replace(text, "\t\"github.com/assay-gpu/assay/checks\"\n", "", 1), "checks.", "")
	}
	if err := os.WriteFile(helper, []byte(text), 0o644); err != nil {
		return nil, err
	}
	overlay[filepath.Join(r.dir, "zz_mutant.go")] = helper
	return overlay, nil
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// helperSource is compiled into the rewritten package.
const helperSource = `package PACKAGE

import (
	"os"
	"reflect"
	"strconv"

	"github.com/assay-gpu/assay/checks"
)

var mutantNumber = func() int { n, _ := strconv.Atoi(os.Getenv("ASSAY_MUTANT")); return n }()

// mutantShift is v, or one unit off as mutants n and n+1.
func mutantShift[T any](n int, v T) T {
	if mutantNumber != n && mutantNumber != n+1 {
		return v
	}
	by := 1 - 2*(mutantNumber-n)
	x := reflect.ValueOf(&v).Elem()
	switch x.Kind() {
	case reflect.Bool:
		x.SetBool(!x.Bool())
	case reflect.String:
		x.SetString(x.String() + "?")
	case reflect.Int64:
		x.SetInt(x.Int() + int64(by)*STEP)
	case reflect.Int:
		x.SetInt(x.Int() + int64(by))
	case reflect.Uint64:
		x.SetUint(x.Uint() + uint64(int64(by)))
	case reflect.Float64:
		x.SetFloat(x.Float() + 0.01*float64(by))
	default:
		panic("no unit for " + x.Type().String())
	}
	return v
}

// mutantVerdict is v, or Unknown, Pass and Fail as mutants n to n+2.
func mutantVerdict(n int, v checks.Verdict) checks.Verdict {
	switch mutantNumber {
	case n:
		return checks.Unknown
	case n + 1:
		return checks.Pass
	case n + 2:
		return checks.Fail
	}
	return v
}
`
