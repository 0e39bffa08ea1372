// Package importrules holds packages to their import rules from their own tests.
//
// A pure package reads no file, network, clock or environment, starts no goroutine and draws no random number: the same
// input gives the same output. Only direct imports are looked at, since fmt itself brings in os.
// Model: tailscale.com/tstest/deptest.
package importrules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// impure names what a pure package may not import, with the reason. A key that ends in "/" is a prefix.
var impure = map[string]string{
	"C":            "cgo calls the outside world",
	"io/ioutil":    "it reads and writes files",
	"log":          "it writes to the outside; a pure package returns what it has to say",
	"log/":         "it writes to the outside; a pure package returns what it has to say",
	"math/rand":    "the same input must give the same output",
	"math/rand/":   "the same input must give the same output",
	"crypto/rand":  "the same input must give the same output",
	"net":          "it reaches the network",
	"net/":         "it reaches the network",
	"os":           "it reads files and the environment",
	"os/":          "it reaches processes, users and signals",
	"runtime":      "it depends on the process it runs in",
	"runtime/":     "it depends on the process it runs in",
	"sync/":        "a pure package has one caller at a time and shares nothing",
	"syscall":      "it reaches the kernel",
	"unsafe":       "values are compared and copied, not reinterpreted",
	"plugin":       "it loads code",
	"database/sql": "it reaches a database",
}

// clock names the functions of package time that read the clock or wait for it.
var clock = map[string]bool{
	"Now": true, "Since": true, "Until": true, "After": true, "AfterFunc": true, "Sleep": true, "Tick": true, "NewTimer": true, "NewTicker": true,
}

// Check fails the test for every import of the package under test that forbid names: by its exact path or, where the
// key ends in "/", by prefix. The value is the reason, and is printed. An empty one makes an exception from a prefix.
func Check(t *testing.T, forbid map[string]string) {
	t.Helper()
	for _, v := range violations(readPackage(t), forbid, nil, false) {
		t.Error(v)
	}
}

// Pure fails the test for everything in the package under test that a pure package may not do, and for every import
// from outside the standard library that is neither in allow nor below a package in allow.
func Pure(t *testing.T, allow ...string) {
	t.Helper()
	if allow == nil {
		allow = []string{}
	}
	for _, v := range violations(readPackage(t), impure, allow, true) {
		t.Error(v)
	}
}

// readPackage parses the files, tests aside, in the directory in which go test runs the package's tests.
func readPackage(t *testing.T) *source {
	t.Helper()
	src, err := read(packageDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(src.files) == 0 {
		t.Fatal("no Go files to hold to the rules")
	}
	return src
}

type source struct {
	fset  *token.FileSet
	files []*ast.File
}

func read(dir fs.FS) (*source, error) {
	src := &source{fset: token.NewFileSet()}
	names, err := fs.Glob(dir, "*.go")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(src.fset, name, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if ignored(f) {
			continue
		}
		src.files = append(src.files, f)
	}
	return src, nil
}

// ignored reports whether f is left out of every build: a generator run by go generate.
func ignored(f *ast.File) bool {
	for _, g := range f.Comments {
		if g.Pos() > f.Package {
			return false
		}
		for _, c := range g.List {
			if c.Text == "//go:build ignore" {
				return true
			}
		}
	}
	return false
}

// violations lists what breaks the rules, in file order. A nil allow lets every import pass that forbid does not name.
func violations(src *source, forbid map[string]string, allow []string, pure bool) []string {
	var out []string
	add := func(pos token.Pos, format string, args ...any) {
		p := src.fset.Position(pos)
		out = append(out, fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...)))
	}
	for _, f := range src.files {
		timeName := ""
		for _, imp := range f.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				continue
			}
			if why, bad := match(forbid, path); bad {
				add(imp.Pos(), "import of %s: %s", path, why)
			} else if allow != nil && !standard(path) && !below(allow, path) {
				add(imp.Pos(), "import of %s: not among the packages this one may know (%s)", path, strings.Join(allow, ", "))
			}
			if path == "time" {
				timeName = "time"
				if imp.Name != nil {
					timeName = imp.Name.Name
				}
			}
		}
		if !pure {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				add(n.Pos(), "go statement: a pure package starts no goroutine")
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && timeName != "" && x.Name == timeName && clock[n.Sel.Name] {
					add(n.Pos(), "time.%s: a pure package reads no clock; take the time as an argument", n.Sel.Name)
				}
			}
			return true
		})
	}
	return out
}

func match(rules map[string]string, path string) (string, bool) {
	if why, ok := rules[path]; ok {
		return why, why != ""
	}
	// The longest prefix that matches gives the most fitting reason.
	keys := make([]string, 0, len(rules))
	for k := range rules {
		if strings.HasSuffix(k, "/") && strings.HasPrefix(path, k) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return "", false
	}
	slices.SortFunc(keys, func(a, b string) int { return len(b) - len(a) })
	return rules[keys[0]], true
}

// standard reports whether path is in the standard library: its first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func below(allow []string, path string) bool {
	for _, a := range allow {
		if path == a || strings.HasPrefix(path, strings.TrimSuffix(a, "/")+"/") {
			return true
		}
	}
	return false
}
