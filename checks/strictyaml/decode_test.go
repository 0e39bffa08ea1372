package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

type colour uint8

func (c *colour) UnmarshalText(b []byte) error {
	switch string(b) {
	case "red":
		*c = 1
	case "green":
		*c = 2
	default:
		return fmt.Errorf("colour %q: want red or green", b)
	}
	return nil
}

type common struct {
	Label string `yaml:"label"`
}

type part struct {
	common
	Colour colour  `yaml:"colour"`
	Weight float64 `yaml:"weight"`
	Spare  *part   `yaml:"spare"`
}

type config struct {
	Name     string          `yaml:"name"`
	Count    int8            `yaml:"count"`
	Size     uint64          `yaml:"size"`
	On       bool            `yaml:"on"`
	Wait     time.Duration   `yaml:"wait"`
	Parts    []part          `yaml:"parts"`
	ByNumber map[int]string  `yaml:"by_number"`
	ByName   map[string]part `yaml:"by_name"`
	ByColour map[colour]bool `yaml:"by_colour"`
	Extra    any             `yaml:"extra"`
	Untagged string
	Hidden   string `yaml:"-"`
}

func TestDecodeReadsEveryKindOfValue(t *testing.T) {
	const text = `
name: "a: b"          # quoted
count: -7
size: 18446744073709551615
on: true
wait: 1m30s
parts:
  - {label: x, colour: green, weight: 1}
  - colour: red
    weight: 2.5
    spare: {label: y}
by_number: {79: reboot, 13: none}
by_name:
  first: {weight: 3}
by_colour: {red: true}
extra: {a: [1, two, 3.5, true, null]}
untagged: |
  two
  lines
`
	var c config
	if err := Decode("f.yaml", []byte(text), &c); err != nil {
		t.Fatal(err)
	}
	want := config{
		Name: "a: b", Count: -7, Size: 1<<64 - 1, On: true, Wait: 90 * time.Second,
		Parts: []part{
			{common: common{"x"}, Colour: 2, Weight: 1},
			{Colour: 1, Weight: 2.5, Spare: &part{common: common{"y"}}},
		},
		ByNumber: map[int]string{79: "reboot", 13: "none"},
		ByName:   map[string]part{"first": {Weight: 3}},
		ByColour: map[colour]bool{1: true},
		Extra:    map[string]any{"a": []any{int64(1), "two", 3.5, true, nil}},
		Untagged: "two\nlines\n",
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestDecodeKeepsWhatTheFileLeavesOut(t *testing.T) {
	c := config{Name: "before", Count: 3, ByNumber: map[int]string{1: "one"}, Parts: []part{{Weight: 9}}}
	if err := Decode("f", []byte("count: 4\nby_number: {2: two}\nparts:\n  # all commented out\n"), &c); err != nil {
		t.Fatal(err)
	}
	if c.Name != "before" || c.Count != 4 || len(c.ByNumber) != 2 || len(c.Parts) != 1 {
		t.Errorf("got %+v", c)
	}
	for _, empty := range []string{"", "# only a comment\n", "---\n", "{}"} {
		if err := Decode("f", []byte(empty), &c); err != nil {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestEveryFaultAtOnceWithItsLine(t *testing.T) {
	const text = `nmae: x
count: 300
size: -1
on: yes
wait: 5 minutes
wait: 5m
parts:
  - colour: blue
    weight: heavy
  - 7
by_number:
  seven: x
by_name: [1]
untagged: {a: 1}
name: &a b
extra: !!int 3
count: 1
`
	want := strings.TrimSpace(`
f.yaml:1:1: nmae: unknown key; did you mean name?
f.yaml:2:8: count: "300": want a whole number
f.yaml:3:7: size: "-1": want a whole number, not below 0
f.yaml:4:5: on: "yes": want true or false
f.yaml:5:7: wait: duration "5 minutes": want a number and a unit, as 30s or 12h
f.yaml:6:1: wait: given twice; first in line 5
f.yaml:8:13: parts[0].colour: colour "blue": want red or green
f.yaml:9:13: parts[0].weight: "heavy": want a number
f.yaml:10:5: parts[1]: "7": want a mapping
f.yaml:12:3: by_number.seven: key "seven": want a whole number
f.yaml:13:10: by_name: a list: want a mapping
f.yaml:14:11: untagged: a mapping: want text
f.yaml:15:7: name: anchors and aliases are not read; write the value out
f.yaml:16:8: extra: tags and directives are not read
f.yaml:17:1: count: given twice; first in line 2`)
	var c config
	err := Decode("f.yaml", []byte(text), &c)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if e.Error() != want {
		t.Errorf("got:\n%s\nwant:\n%s", e, want)
	}
	if want := "correct the 15 lines named above; nothing in f.yaml was used"; e.Hint() != want {
		t.Errorf("hint %q, want %q", e.Hint(), want)
	}
}

func TestFaultsOfTheWholeFile(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"not YAML", "a: [1, 2\nb: 3\n", "f:2:1: ',' or ']' must be specified"},
		{"a bad indent", "name: x\n  count: 3\n", "f:1:7: "},
		{"a list where a mapping belongs", "- 1\n", "f:1:1: a list: want a mapping"},
		{"a scalar where a mapping belongs", "hello", `f:1:1: "hello": want a mapping`},
		{"two documents", "name: a\n---\nname: b\n", "f:3:1: a second document; the file holds one"},
		{"a merge key", "name: a\n<<: {count: 1}\n", "f:2:1: merge keys are not read"},
		{"a key that is a list", "? [a]\n: 1\n", "f:2:1: found an invalid key"},
		{"a key nothing is like", "zzzzzz: 1\n", "f:1:1: zzzzzz: unknown key; known here: name, count, size"},
		{"a value left empty", "name:\n", "name: nothing: want text"},
		{"brackets nested past all sense", strings.Repeat("[", 1000), "f:1:1: nested more than 200 deep"},
		{"dashes nested past all sense", "\n" + strings.Repeat("- ", 1000), "f:2:1: nested more than 200 deep"},
		{"a file larger than people write", "name: " + strings.Repeat("x", MaxSize), "more than the 131072 that are read"},
		{"a hidden field", "hidden: x\n", "unknown key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c config
			err := Decode("f", []byte(tt.text), &c)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestTypesThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct {
		into any
		text string
	}{
		{new(struct{ C chan int }), "c: 1"},
		{new(struct{ E error }), "e: 1"},
		{new(struct{ M map[float64]int }), "m: {1.5: 1}"},
	} {
		if err := Decode("f", []byte(tt.text), tt.into); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%T: got %v", tt.into, err)
		}
	}
	if err := Decode("f", nil, config{}); err == nil || !strings.Contains(err.Error(), "want a pointer") {
		t.Errorf("a value was taken for a pointer: %v", err)
	}
}

func TestLinesNameTheNearestPlace(t *testing.T) {
	var c config
	lines, err := DecodeWithLines("f", []byte("name: x\nparts:\n  - weight: 1\n  - weight: 2\n"), &c)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"name": 1, "parts": 2, "parts[1].weight": 4, "parts[1].colour": 4, "parts[7].colour": 2, "count": 0,
	} {
		if got, _ := lines.At(path); got != want {
			t.Errorf("%s: line %d, want %d", path, got, want)
		}
	}
}

func TestErrorWithoutFaultsIsNoError(t *testing.T) {
	e := &Error{File: "f"}
	if e.Err() != nil {
		t.Error("an Error without faults is an error")
	}
	e.Add(0, 0, "a.b", "too %s", "big")
	if got := e.Err().Error(); got != "f: a.b: too big" {
		t.Errorf("got %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"name: x\ncount: 3\nparts:\n  - {label: a, colour: red}\n", "by_number: {79: a}\nextra: [1, {a: b}]", "a: &x 1\nb: *x\n", "? a\n: b\n",
		"<<: {a: 1}\n", "name: |\n  a\n  b\n", "\xff\xfe: 1", "wait: 3s\nwait: 4", "--- a\n--- b\n", "name: !!str 3", "%YAML 1.2\n---\nname: a", "{a: [b, {c: d}]}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c config
		lines, err := DecodeWithLines("f", data, &c)
		if err == nil {
			return
		}
		var e *Error
		if !errors.As(err, &e) || len(e.Faults) == 0 {
			t.Fatalf("an error without a fault: %v", err)
		}
		n := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 2
		for _, f := range e.Faults {
			if f.Line < 0 || f.Line > n {
				t.Fatalf("line %d of %d: %s", f.Line, n, f.Message)
			}
		}
		for path := range lines {
			lines.At(path + ".x")
		}
	})
}
