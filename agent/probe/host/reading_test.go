package host

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks/policy"
)

// Each story gives texts, one a line, as "name: text" (\n and \t as in Go), and shows the reading of one group as JSON,
// what is empty left out. link: and error: are as in Texts.
func TestReadings(t *testing.T) {
	datadriven.Walk(t, "testdata/readings", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			texts, pol := Texts{}, policy.Default()
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "ignore":
					pol.Infiniband.Ignore, pol.Ethernet.Ignore = strings.Join(a.Vals, " "), strings.Join(a.Vals, " ")
				case "expect":
					pol.Mounts.Expect = map[string]policy.Mount{a.Vals[0]: {}}
				}
			}
			for line := range strings.Lines(d.Input) {
				name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
				texts[strings.TrimSuffix(name, ":")] = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(text)
			}
			h, got := New(texts).Read(t.Context(), time.Minute, pol)
			again, _ := New(got).Read(t.Context(), time.Minute, pol)
			if !reflect.DeepEqual(h, again) {
				t.Errorf("%s: what was read gives another reading:\n%+v\n%+v", d.Pos, again, h)
			}
			field := reflect.ValueOf(h).FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, d.Cmd) })
			return compact(t, field.Interface())
		})
	})
}

// compact is v as JSON, one entry of its list a line, without what is zero.
func compact(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	prune(m)
	var lists []string
	for k, x := range m {
		if list, ok := x.([]any); ok {
			delete(m, k)
			for _, e := range list {
				b, _ := json.Marshal(e)
				lists = append(lists, string(b))
			}
		}
	}
	b, _ = json.Marshal(m)
	return strings.Join(append([]string{string(b)}, lists...), "\n") + "\n"
}

func prune(m map[string]any) {
	for k, v := range m {
		switch x := v.(type) {
		case map[string]any:
			prune(x)
			if len(x) == 0 {
				delete(m, k)
			}
		case []any:
			for _, e := range x {
				if em, ok := e.(map[string]any); ok {
					prune(em)
				}
			}
		default:
			if reflect.ValueOf(v).IsZero() {
				delete(m, k)
			}
		}
	}
}
