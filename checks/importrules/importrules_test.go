package importrules

import (
	"strings"
	"testing"
	"testing/fstest"
)

func lint(t *testing.T, text string, forbid map[string]string, allow []string, pure bool) string {
	t.Helper()
	src, err := read(fstest.MapFS{
		"a.go":      {Data: []byte(text)},
		"a_test.go": {Data: []byte("package a\nimport \"os\"\n")},
		"gen.go":    {Data: []byte("//go:build ignore\n\npackage main\nimport \"os\"\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(violations(src, forbid, allow, pure), "\n")
}

func TestPure(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"plain computing is pure", `import ("fmt"; "strings"; "time"); var d time.Duration`, ""},
		{"files", `import "os"`, "a.go:1: import of os: it reads files"},
		{"a package below one that is named", `import "net/http"`, "import of net/http: it reaches the network"},
		{"a name that only looks like one", `import "network"`, ""},
		{"the clock", `import "time"; var t = time.Now()`, "time.Now: a pure package reads no clock"},
		{"the clock under another name", `import clk "time"; var t = clk.Since`, "time.Since"},
		{"a method called Now on something else", `import "time"; var x struct{ Now time.Duration }; var y = x.Now`, ""},
		{"a goroutine", `func f() { go f() }`, "starts no goroutine"},
		{"random numbers", `import "math/rand/v2"`, "the same input must give the same output"},
		{"another module", `import "go.etcd.io/etcd/client/v3"`, "not among the packages this one may know"},
		{"an allowed package", `import "example.com/ok"`, ""},
		{"a package below an allowed one", `import "example.com/ok/sub"`, ""},
		{"a package whose name starts like an allowed one", `import "example.com/okay"`, "example.com/okay: not among"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := lint(t, "package a; "+tt.body, impure, []string{"example.com/ok"}, true)
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q in it", got, tt.want)
			}
		})
	}
}

func TestCheckPrintsTheReason(t *testing.T) {
	forbid := map[string]string{"go.etcd.io/": "only the store talks to etcd", "os": "no files here"}
	got := lint(t, "package a; import \"go.etcd.io/etcd/api/v3\"; import \"time\"; var t = time.Now()", forbid, nil, false)
	if got != "a.go:1: import of go.etcd.io/etcd/api/v3: only the store talks to etcd" {
		t.Errorf("got %q", got)
	}
	if got := lint(t, "package a; import \"go.etcd.iota\"", forbid, nil, false); got != "" {
		t.Errorf("a prefix matched in the middle of a name: %q", got)
	}
	forbid["go.etcd.io/bbolt"] = ""
	if got := lint(t, "package a; import \"go.etcd.io/bbolt\"; import \"go.etcd.io/bbolt2\"", forbid, nil, false); got != "a.go:1: import of go.etcd.io/bbolt2: only the store talks to etcd" {
		t.Errorf("one exception, and got %q", got)
	}
}

func TestEveryFaultIsListed(t *testing.T) {
	got := lint(t, "package a\nimport \"os\"\nimport \"net\"\nfunc f() { go f() }\n", impure, []string{}, true)
	if n := strings.Count(got, "\n") + 1; n != 3 {
		t.Errorf("%d faults, want 3:\n%s", n, got)
	}
}

func TestReadRefusesWhatDoesNotParse(t *testing.T) {
	if _, err := read(fstest.MapFS{"a.go": {Data: []byte("package")}}); err == nil {
		t.Error("a file that is not Go was read without an error")
	}
}
