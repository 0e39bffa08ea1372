package checks

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFold(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []Verdict
		want Verdict
	}{
		{"nothing was tested", nil, Unknown},
		{"all pass", []Verdict{Pass, Pass}, Pass},
		{"one unknown hides every pass", []Verdict{Pass, Unknown, Pass}, Unknown},
		{"a fail outranks an unknown", []Verdict{Unknown, Fail, Pass}, Fail},
		{"a fail outranks an unknown, whichever comes first", []Verdict{Fail, Unknown}, Fail},
		{"not applicable alone proves nothing", []Verdict{NotApplicable, NotApplicable}, Unknown},
		{"not applicable beside a pass", []Verdict{NotApplicable, Pass}, Pass},
		{"a value out of range is unknown", []Verdict{Pass, Verdict(9)}, Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Fold(tt.in...); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFoldProperties(t *testing.T) {
	verdicts := rapid.SliceOf(rapid.SampledFrom([]Verdict{Unknown, Pass, Fail, NotApplicable}))
	rapid.Check(t, func(t *rapid.T) {
		vs := verdicts.Draw(t, "verdicts")
		got := Fold(vs...)
		if shuffled := rapid.Permutation(vs).Draw(t, "shuffled"); Fold(shuffled...) != got {
			t.Fatalf("order matters: %v and %v", vs, shuffled)
		}
		if (got == Fail) != slices.Contains(vs, Fail) {
			t.Fatalf("%v: got %v", vs, got)
		}
		if got == Pass && (!slices.Contains(vs, Pass) || slices.Contains(vs, Unknown)) {
			t.Fatalf("%v passed without proof", vs)
		}
		if got == NotApplicable {
			t.Fatalf("%v: a fold is never not applicable", vs)
		}
		if got != Fail && Fold(append(vs, Unknown)...) != Unknown {
			t.Fatalf("%v: an unknown more did not make it unknown", vs)
		}
	})
}

func TestVerdictText(t *testing.T) {
	for v, want := range map[Verdict]string{Unknown: `"unknown"`, Pass: `"pass"`, Fail: `"fail"`, NotApplicable: `"not_applicable"`, 9: `"unknown"`} {
		b, err := json.Marshal(v)
		if err != nil || string(b) != want {
			t.Errorf("%d: got %s, %v, want %s", v, b, err, want)
		}
	}
	v := Pass
	if err := json.Unmarshal([]byte(`"passed"`), &v); err == nil {
		t.Error("a name that does not exist was read")
	}
	if err := json.Unmarshal([]byte(`"fail"`), &v); err != nil || v != Fail {
		t.Errorf("got %v, %v", v, err)
	}
	if got := Verdict(9).String(); got != "verdict(9)" {
		t.Errorf("got %q", got)
	}
}

func TestActionText(t *testing.T) {
	for a := None; a <= RMA; a++ {
		b, err := a.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Action
		if err := back.UnmarshalText(b); err != nil || back != a {
			t.Errorf("%v written as %s, read back as %v, %v", a, b, back, err)
		}
	}
	if _, err := Action(99).MarshalText(); err == nil {
		t.Error("an action without a name was written")
	}
	var a Action
	if err := a.UnmarshalText([]byte("explode")); err == nil {
		t.Error("an action that does not exist was read")
	}
	if !(None < Watch && Watch < RestartApp && RestartApp < ResetGPU && ResetGPU < Reboot && Reboot < FixConfig && FixConfig < Drain && Drain < RMA) {
		t.Error("actions are out of order")
	}
	for a := None; a <= RMA; a++ {
		if got, want := a.Harmless(), a == None || a == Watch || a == RestartApp; got != want {
			t.Errorf("%v: harmless %t, want %t", a, got, want)
		}
	}
}

func TestLevelText(t *testing.T) {
	for l := NoLevel; l <= Intake; l++ {
		b, _ := l.MarshalText()
		var back Level
		if err := back.UnmarshalText(b); err != nil || back != l {
			t.Errorf("%d written as %q, read back as %d, %v", l, b, back, err)
		}
	}
	var l Level
	err := l.UnmarshalText([]byte("deep"))
	if err == nil || err.Error() != "level deep: no such level" {
		t.Errorf("got %v", err)
	}
	if Level(99).String() != "" {
		t.Error("a level out of range has a name")
	}
}

func TestAvailabilityText(t *testing.T) {
	for a, want := range map[Availability]string{Unread: "unread", Read: "read", NotSupported: "not_supported", 9: "unread"} {
		if b, err := a.MarshalText(); err != nil || string(b) != want {
			t.Errorf("%d: got %s, %v, want %s", a, b, err, want)
		}
	}
	a := Read
	if err := a.UnmarshalText([]byte("maybe")); err != nil || a != Unread {
		t.Errorf("an unknown name read as %v, %v, want unread", a, err)
	}
	if err := a.UnmarshalText([]byte("not_supported")); err != nil || a != NotSupported {
		t.Errorf("got %v, %v", a, err)
	}
}
