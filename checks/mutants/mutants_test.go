package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
)

// A subject is one package, what to change in it, and the package whose tests must notice.
type subject struct {
	pkg        string   // folder below checks; "." for checks itself
	judges     []string // functions that turn a reading into findings
	thresholds []string // expressions, as the source has them
	tests      string   // the package whose tests are run; empty: pkg's own
	defaults   bool     // move the built-in policy's values
	durations  bool     // its 64-bit thresholds are durations, moved by a second
}

var subjects = []subject{
	{pkg: "ecc", judges: []string{"Judge"}, thresholds: []string{"p.MaxVolatileUncorrected", "p.MaxVolatileCorrected", "p.RequireEnabled", "p.WatchCorrectedPerHour", "p.MaxCorrectedPerHour"}},
	{pkg: "rowremap", judges: []string{"Judge"}, thresholds: []string{"p.MaxCorrectable", "p.WatchUncorrectable"}},
	{pkg: "retired", judges: []string{"Judge"}, thresholds: []string{"p.Full", "p.Watch"}},
	{pkg: "nvlink", judges: []string{"Judge"}, thresholds: []string{"j.policy.Links", "j.policy.MaxCRCPerSecond", "j.policy.MaxRetriesPerMinute", "j.policy.MaxEffectiveBER"}},
	{pkg: "fabric", judges: []string{"Judge", "JudgeManager"}, thresholds: []string{"p.RequireManager"}},
	{pkg: "leftover", judges: []string{"Judge"}},
	{pkg: "pcie", judges: []string{"Judge"}, thresholds: []string{"p.Width", "p.RequireACSOff", "p.BusyPercent", "per.Gen1", "per.Gen2", "per.Gen3", "per.Gen4", "per.Gen5", "per.Gen6"}},
	{pkg: "clocks", judges: []string{"Judge"}, thresholds: []string{"p.MaxHWShare", "p.MaxSWShare"}},
	{pkg: "thermal", judges: []string{"Judge"}, thresholds: []string{"p.MinMargin", "p.MaxCore", "p.MaxMemory"}},
	{pkg: "modes", judges: []string{"Judge", "JudgeSoftware"}, thresholds: []string{"p.RequirePersistence", "p.Compute", "p.MIG"}},
	{pkg: "recovery", judges: []string{"Judge"}},
	{pkg: "driver", judges: []string{"JudgeCall", "JudgeInit"}, thresholds: []string{"hungChildren"}},
	{pkg: "inventory", judges: []string{"Judge"}, thresholds: []string{"j.policy.Count"}},
	{pkg: "xid", judges: []string{"Judge"}, thresholds: []string{"p.SameTPC", "p.SameGPU", "p.RepeatWindow"}, durations: true},
	{pkg: "user", judges: []string{"Judge"}},
	{pkg: "aer", judges: []string{"Judge"}, thresholds: []string{"p.MaxCorrected", "p.MaxNonFatal", "p.Window"}, durations: true},
	{pkg: "nvrm", judges: []string{"Judge"}},
	{pkg: "nic", judges: []string{"Judge"}},
	{pkg: "hostlog", judges: []string{"Judge"}, thresholds: []string{"p.SoftLockup", "p.HungTask"}, durations: true},
	{pkg: "dcgm", judges: []string{"Judge", "JudgeHealth"}, thresholds: []string{"p.Settle", "p.Required"}},
	{pkg: "port", judges: []string{"Judge"}, thresholds: []string{"p.Drop.D()", "p.Count", "p.Rate", "want", "limit.Max", "p.Flaps", "p.FlapDown.D()", "p.FlapWindow.D()"}, durations: true},
	{pkg: "mounts", judges: []string{"Judge"}, thresholds: []string{"p.Hang.D()", "p.MaxUsed", "p.WatchUsed", "want.MinBytes", "want.Writable"}, durations: true},
	{pkg: "memory", judges: []string{"Judge"}, thresholds: []string{"p.Bytes", "p.Tolerance", "p.MaxUncorrected", "p.Corrected.Max"}},
	{pkg: "cpu", judges: []string{"Judge"}, thresholds: []string{"p.Count", "want"}},
	{pkg: "processes", judges: []string{"Judge"}, thresholds: []string{"p.Stuck.D()", "p.Killed.D()"}, durations: true},
	{pkg: "kernel", judges: []string{"Judge"}},
	{pkg: "nvme", judges: []string{"Judge"}, thresholds: []string{"p.Count", "p.Margin", "p.FailWarnings", "p.WatchSpare", "p.WatchUsed", "p.WatchMediaErrors"}},
	{pkg: "timesync", judges: []string{"Judge"}, thresholds: []string{"p.After.D()", "p.MaxError.D()", "p.Require"}, durations: true},
	{pkg: "sdc", judges: []string{"Judge"}},
	{pkg: "bandwidth", judges: []string{"Judge"}, thresholds: []string{"p.MinShare", "p.PeerShare", "p.MinGBps"}},
	{pkg: "catalog", judges: []string{"Judge", "JudgeLog", "JudgeBeside", "JudgeUser", "JudgeDCGM", "JudgeDCGMHealth", "JudgeSDC", "JudgeBandwidth"}, thresholds: []string{"p.Agent.HungChildren"}},
	{pkg: "strike", thresholds: []string{"span", "gap", "r.MinDown", "r.Window", "r.Count", "limit"}, durations: true},
	{pkg: ".", thresholds: []string{"g.gap", "g.cause"}, durations: true},
	{pkg: "policy", thresholds: []string{"b.MinNodes", "b.Share"}},
	{pkg: "policy", defaults: true, tests: "policy/policyfile", durations: true}, // its defaults; the one size in bytes moves as far
}

func TestNoMutantSurvives(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the tests of every check")
	}
	for _, s := range subjects {
		t.Run(filepath.Join("checks", s.pkg), func(t *testing.T) { s.run(t) })
	}
}

func (s subject) run(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("..", s.pkg))
	if err != nil {
		t.Fatal(err)
	}
	step := "1"
	if s.durations {
		step = "1_000_000_000"
	}
	r, err := newRewriter(dir, step)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range s.judges {
		if err := r.constant(j); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range s.thresholds {
		r.threshold(e)
		if r.targets[e] == 0 {
			t.Errorf("%s is not compared anywhere in checks/%s", e, s.pkg)
		}
	}
	if s.defaults {
		r.defaults(t)
	}
	out := t.TempDir()
	overlay, err := r.write(out)
	if err != nil {
		t.Fatal(err)
	}
	tests := dir
	if s.tests != "" {
		tests = filepath.Join(dir, "..", s.tests)
	}
	binary := build(t, out, tests, overlay)
	if text, failed := runTests(t, binary, tests, 0); failed {
		t.Fatalf("the rewritten source fails without a mutant:\n%s", text)
	}
	killed := 0
	for _, m := range r.mutants {
		if text, failed := runTests(t, binary, tests, m.number); !failed {
			t.Errorf("survives: %s\n%s", m.what, text)
			continue
		}
		killed++
	}
	t.Logf("%d of %d mutants noticed", killed, len(r.mutants))
	if len(r.mutants) == 0 {
		t.Error("no mutant was made")
	}
}

// build compiles the tests of the package in dir over the rewritten source.
func build(t *testing.T, out, dir string, overlay map[string]string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(out, "overlay.json")
	if err := os.WriteFile(list, text, 0o644); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(out, "mutants.test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, ".")
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the rewritten source does not compile: %v\n%s", err, text)
	}
	return binary
}

// runTests runs the tests with one mutant at work, 0 for none, and reports whether any failed.
func runTests(t *testing.T, binary, dir string, number int) (output string, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"-test.failfast", "-test.skip=Flood|Allocates", "-test.timeout=50s"}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("ASSAY_MUTANT=%d", number), "RAPID_NOFAILFILE=true", "RAPID_CHECKS=20", "RAPID_SHRINKTIME=0s")
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return b.String(), err != nil
}

// defaults makes two mutants of every value that the built-in policy sets: in the functions of package policy that are
// named default and give a section.
func (r *rewriter) defaults(t *testing.T) {
	t.Helper()
	sections := map[string]reflect.Type{}
	for f := range reflect.TypeFor[policy.Policy]().Fields() {
		if f.Type.Kind() == reflect.Struct {
			sections[f.Type.Name()] = f.Type
		}
	}
	for _, name := range sortedKeys(r.files) {
		f := r.files[name]
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "default") {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if ok && lit.Type != nil && sections[f.source(lit.Type)] != nil {
					r.shiftFields(t, f, lit, sections[f.source(lit.Type)])
					delete(sections, f.source(lit.Type))
					return false
				}
				return true
			})
		}
	}
	for name, typ := range sections {
		if !reflect.ValueOf(policy.Default()).FieldByName(fieldOf(typ)).IsZero() {
			t.Errorf("no function named default gives a policy.%s, and yet it has a default", name)
		}
	}
}

// fieldOf is the policy's field of type typ.
func fieldOf(typ reflect.Type) string {
	for f := range reflect.TypeFor[policy.Policy]().Fields() {
		if f.Type == typ {
			return f.Name
		}
	}
	return ""
}

// shiftFields makes two mutants of every number, text and truth value in a literal.
func (r *rewriter) shiftFields(t *testing.T, f *file, lit *ast.CompositeLit, typ reflect.Type) {
	for _, e := range lit.Elts {
		kv := e.(*ast.KeyValueExpr)
		field, ok := typ.FieldByName(kv.Key.(*ast.Ident).Name)
		switch {
		case !ok:
			t.Fatalf("policy.%s has no field %s", typ.Name(), f.source(kv.Key))
		case field.Type.Kind() == reflect.Struct:
			r.shiftFields(t, f, kv.Value.(*ast.CompositeLit), field.Type)
			continue
		case field.Type.Kind() == reflect.Map && field.Type.Elem().Kind() == reflect.Struct:
			if of, ok := kv.Value.(*ast.CompositeLit); ok {
				for _, e := range of.Elts {
					r.shiftFields(t, f, e.(*ast.KeyValueExpr).Value.(*ast.CompositeLit), field.Type.Elem())
				}
			}
			continue
		case field.Type.Kind() == reflect.Slice || field.Type.Kind() == reflect.Map: // no unit to move them by
			continue
		}
		n := r.add(f, kv.Pos(), "the default of %s is one unit more, or another", field.Name)
		r.add(f, kv.Pos(), "the default of %s is one unit less, or another", field.Name)
		f.replace(kv.Value, fmt.Sprintf("mutantShift[%s](%d, %s)", strings.TrimPrefix(field.Type.String(), "policy."), n, f.source(kv.Value)))
	}
}

// Every number and switch that a policy holds for a check is among the thresholds above.
func TestEveryThresholdIsMoved(t *testing.T) {
	var have []string
	for _, s := range subjects {
		for _, e := range s.thresholds {
			e = strings.TrimSuffix(e, ".D()")
			have = append(have, e[strings.LastIndex(e, ".")+1:])
		}
	}
	fleet := []string{"Baseline", "Agent", "Hooks", "Certificate", "Guard", "Lifecycle", "Drill", "Lemons"} // what they hold is read outside the checks
	asked := map[string]bool{                                                                               // how the agent asks DCGM; what it answers is not judged by them
		"DCGM.Every": true, "DCGM.Deadline": true, "DCGM.Screen": true, "DCGM.R1": true, "DCGM.R2": true, "DCGM.R3": true, "DCGM.R4": true,
		"XID.NVMLEvents": true, "Golden.Screen": true, "Golden.Prolog": true, "Golden.SoakFor": true, "Golden.Within": true, "Golden.TrustSimulated": true, "Golden.Corpora": true, // and whether and how a golden run is made
	}
	for section := range reflect.TypeFor[policy.Policy]().Fields() {
		if section.Type.Kind() != reflect.Struct || slices.Contains(fleet, section.Name) {
			continue
		}
		for _, f := range leaves(section.Type) {
			kind := f.Type.Kind()
			if f.Type == reflect.TypeFor[policy.Limit]() {
				continue // its Max is moved where it is compared, and the rest in package strike
			}
			if kind != reflect.String && kind != reflect.Map && kind != reflect.Slice && !asked[section.Name+"."+f.Name] && !slices.Contains(have, f.Name) {
				t.Errorf("policy.%s.%s is not moved", section.Name, f.Name)
			}
		}
	}
}

// Every function below checks that judges, and gives findings, is among those above.
func TestEveryJudgeIsReplaced(t *testing.T) {
	replaced := map[string]bool{}
	for _, s := range subjects {
		for _, j := range s.judges {
			replaced[s.pkg+"."+j] = true
		}
	}
	found := 0
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Judge") {
				continue
			}
			found++
			if name := filepath.ToSlash(filepath.Dir(path))[len("../"):] + "." + fn.Name.Name; !replaced[name] {
				t.Errorf("%s is not replaced by constants", name)
			}
		}
		return nil
	})
	if err != nil || found < 40 {
		t.Errorf("%d functions found that judge, %v", found, err)
	}
}

// leaves are the fields of a struct and of the structs in it, limits whole.
func leaves(typ reflect.Type) (out []reflect.StructField) {
	for f := range typ.Fields() {
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[policy.Limit]() {
			out = append(out, leaves(f.Type)...)
		} else {
			out = append(out, f)
		}
	}
	return out
}

// A harness that notices nothing would pass as well: it must report a test that looks at nothing.
func TestASurvivorIsReported(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs a test")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/blind\n\ngo 1.26\n",
		"a.go":      "package blind\n\ntype limits struct{ Max int }\n\nfunc Over(n int, p limits) bool { return n > p.Max }\n",
		"a_test.go": "package blind\n\nimport \"testing\"\n\nfunc TestOver(t *testing.T) {\n\tif !Over(9, limits{3}) || Over(1, limits{3}) {\n\t\tt.Error(\"far from the limit\")\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := newRewriter(dir, "1")
	if err != nil {
		t.Fatal(err)
	}
	r.threshold("p.Max")
	out := t.TempDir()
	overlay, err := r.write(out)
	if err != nil {
		t.Fatal(err)
	}
	// The helper's verdicts need package checks, which this module does not know.
	helper := overlay[filepath.Join(dir, "zz_mutant.go")]
	text, err := os.ReadFile(helper)
	if err != nil {
		t.Fatal(err)
	}
	cut, _, _ := strings.Cut(string(text), "// mutantVerdict")
	if err := os.WriteFile(helper, []byte(strings.Replace(cut, "\t\"github.com/assay-gpu/assay/checks\"\n", "", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	binary := build(t, out, dir, overlay)
	survivors := 0
	for _, m := range r.mutants {
		if _, failed := runTests(t, binary, dir, m.number); !failed {
			survivors++
		}
	}
	if len(r.mutants) != 2 || survivors != 2 {
		t.Errorf("%d of %d mutants survive a test that looks far from the limit, want 2 of 2", survivors, len(r.mutants))
	}
}
