package catalog

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Every check has its three fixtures: its tests call checktest.Three or checktest.Events for its id.
func TestEveryCheckHasItsThreeFixtures(t *testing.T) {
	ids, calls := map[string]string{}, map[string]bool{} // value of "package.Name"; first arguments of the calls
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "_test.go") {
			fixtureCalls(f, calls)
		} else {
			textConstants(f, ids)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for arg := range calls {
		have[ids[arg]] = true
		if text, err := strconv.Unquote(arg); err == nil {
			have[text] = true
		}
	}
	for _, id := range IDs() {
		if !have[id] {
			t.Errorf("no test calls checktest.Three or checktest.Events for %s: nobody has seen it pass, fail and say that it cannot tell", id)
		}
	}
}

// fixtureCalls notes the id with which f calls package checktest, as "text" or package.Name.
func fixtureCalls(f *ast.File, calls map[string]bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) != 5 {
			return true
		}
		sel, ok := c.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Three" && sel.Sel.Name != "Events" {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "checktest" {
			return true
		}
		switch id := c.Args[1].(type) {
		case *ast.BasicLit:
			calls[id.Value] = true
		case *ast.Ident:
			calls[strings.TrimSuffix(f.Name.Name, "_test")+"."+id.Name] = true
		case *ast.SelectorExpr:
			if pkg, ok := id.X.(*ast.Ident); ok {
				calls[pkg.Name+"."+id.Sel.Name] = true
			}
		}
		return true
	})
}

// textConstants notes the text constants of f.
func textConstants(f *ast.File, ids map[string]string) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, name := range v.Names {
				if i >= len(v.Values) {
					continue
				}
				if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil {
						ids[f.Name.Name+"."+name.Name] = text
					}
				}
			}
		}
	}
}
