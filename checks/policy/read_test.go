package policy

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// What one version writes another reads: sections and values that did not exist then have their built-in values, and a map
// that somebody has shortened does not grow back.
func TestReadOfAnotherVersion(t *testing.T) {
	p := Default()
	p.Version, p.Mode, p.RowRemap.MaxCorrectable = 7, Act, 3
	p.Infiniband.Counters = map[string]Limit{}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Read(text); err != nil || !reflect.DeepEqual(got, p) {
		t.Fatalf("written and read it is another policy: %v\n%s", err, text)
	}

	var old map[string]any
	if err := json.Unmarshal(text, &old); err != nil {
		t.Fatal(err)
	}
	delete(old, "nvlink")                                  // a section that was not there
	delete(old["ecc"].(map[string]any), "require_enabled") // a value that was not there
	old["of_a_later_version"] = map[string]any{"limit": 1}
	text, err = json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if got.RowRemap.MaxCorrectable != 3 || got.Version != 7 || len(got.Infiniband.Counters) != 0 {
		t.Errorf("what was written is lost: %+v", got.RowRemap)
	}
	if !reflect.DeepEqual(got.NVLink, Default().NVLink) || !got.ECC.RequireEnabled {
		t.Errorf("nvlink %+v, ecc %+v: want the built-in values", got.NVLink, got.ECC)
	}
	if faults := Validate(got); len(faults) > 0 {
		t.Errorf("it makes no sense: %v", faults)
	}
}

func TestReadOfJunk(t *testing.T) {
	for text, want := range map[string]string{"": "unexpected end", "[]": "array", `{"ecc": 3}`: "ecc", `{"agent":{"interval":"soon"}}`: "interval"} {
		if p, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want an error with %q", text, p.Version, err, want)
		}
	}
}
