package dcgm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

func samples(t testing.TB) map[string]string {
	t.Helper()
	names, err := filepath.Glob("testdata/dcgm/*")
	if err != nil || len(names) < 9 {
		t.Fatal(names, err)
	}
	out := map[string]string{}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(n)] = string(b)
	}
	return out
}

func judged(text string) []checks.Finding {
	return Judge("n", nil, Parse(text), policy.Default().DCGM)
}

func faults(fs []checks.Finding) map[string]bool {
	out := map[string]bool{}
	for _, f := range fs {
		if f.Verdict == checks.Fail {
			out[line(f)] = true
		}
	}
	return out
}

// What holds for every text, whatever it is.
func relations(t *testing.T, text string) {
	fs := judged(text)
	if len(fs) == 0 {
		t.Fatal("nothing is said of it")
	}
	for _, f := range fs {
		if f.Check != ID || f.Reason == "" || strings.ContainsAny(f.Reason, "\n\r\x00") || f.Verdict == checks.Fail && f.Action.Harmless() || f.Hard && f.Verdict != checks.Fail {
			t.Fatalf("%+v", f)
		}
		if b, err := json.Marshal(f); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
	}
	// Judged again it is the same.
	if a, b := show(fs), show(judged(text)); a != b {
		t.Fatalf("judged twice:\n%s\nand\n%s", a, b)
	}
	// Text without a brace before it changes nothing.
	if a, b := show(fs), show(judged("Successfully ran diagnostic for group.\n"+text)); a != b && !strings.Contains(a, "stops being JSON") && !Parse(text).Table {
		t.Fatalf("after a line of text:\n%s\nwithout it:\n%s", b, a)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s)
	}
	for _, s := range []string{
		"", "{", `{"DCGM Diagnostic":{"runtime_error":7}}`, `{"test_categories":[{"tests":[{"name":"a","results":[{"gpu_ids":"0,1,2000"}]}]}]}`,
		`{"DCGM Diagnostic":{"test_categories":[null,{"tests":[null,{"name":"\u0000","test_summary":{"status":"fail"}}]}]}}}{`,
		"| Diagnostic | Result |\n| x | Fail - GPU: 7 |\n| Warning: GPU9 | y |",
	} {
		f.Add(s)
	}
	f.Fuzz(relations)
}

func TestRelationsOfTheSamples(t *testing.T) {
	for name, text := range samples(t) {
		t.Run(name, func(t *testing.T) { relations(t, text) })
	}
}

// The beginning of an output names no fault that the whole does not, and never passes where the whole does not: it says
// that it is cut.
func TestEveryBeginningOfASample(t *testing.T) {
	for name, text := range samples(t) {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		whole := judged(text)
		all := faults(whole)
		for n := range len(strings.TrimRight(text, "\n")) {
			part := judged(text[:n])
			for f := range faults(part) {
				if !all[f] {
					t.Fatalf("%s cut after %d bytes has the fault %q", name, n, f)
				}
			}
			if checks.FoldFindings(part) == checks.Pass {
				t.Fatalf("%s cut after %d bytes passes", name, n)
			}
		}
	}
}

// Two outputs one after the other have the faults of both.
func TestTwoOutputs(t *testing.T) {
	all := samples(t)
	for a, textA := range all {
		for b, textB := range all {
			if !strings.HasSuffix(a, ".json") || !strings.HasSuffix(b, ".json") {
				continue
			}
			both := faults(judged(textA + "\n" + textB))
			for _, one := range []string{textA, textB} {
				for f := range faults(judged(one)) {
					if !both[f] && !both[strings.Replace(f, ": fail drain", ": fail drain count=2", 1)] && !both[countedTwice(f)] {
						t.Errorf("%s then %s: lost %q of\n%v", a, b, f, both)
					}
				}
			}
		}
	}
}

func countedTwice(line string) string {
	head, tail, _ := strings.Cut(line, ": fail ")
	what, reason, _ := strings.Cut(tail, ": ")
	return fmt.Sprintf("%s: fail %s count=2: %s", head, what, reason)
}

// Of JSON that is JSON, the loose reader reads what encoding/json reads.
func FuzzLoose(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s)
	}
	f.Add(`{"a":[1,-2.5e3,true,false,null,"\u00e4\n\"x\"",{"b":{}}],"a":2}`)
	f.Fuzz(func(t *testing.T, s string) {
		if !strings.HasPrefix(s, "{") {
			return
		}
		o, end, cut, bad := readObject(s, 0)
		if end < 1 || end > len(s) || cut && bad >= 0 {
			t.Fatalf("end %d of %d, cut %v, bad %d", end, len(s), cut, bad)
		}
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		var want map[string]any
		if d.Decode(&want) != nil || strings.Contains(s, `\`) || !strings.EqualFold(strings.ToValidUTF8(s, ""), s) || strings.Count(s, "{")+strings.Count(s, "[") > maxDepth {
			return // escapes are read as spaces and lines, on purpose
		}
		if cut || bad >= 0 || int64(end) != d.InputOffset() {
			t.Fatalf("JSON of %d bytes is read to %d, cut %v, bad %d", d.InputOffset(), end, cut, bad)
		}
		if got, w := fmt.Sprint(plain(o)), fmt.Sprint(want); got != w {
			t.Fatalf("got  %s\nwant %s", got, w)
		}
	})
}

// plain gives a value in encoding/json's form.
func plain(v any) any {
	switch v := v.(type) {
	case *object:
		m := map[string]any{}
		for _, e := range v.members {
			m[e.key] = plain(e.value)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i := range v {
			l[i] = plain(v[i])
		}
		return l
	case number:
		return json.Number(v)
	}
	return v
}
