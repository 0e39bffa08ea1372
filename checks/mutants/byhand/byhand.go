// Package byhand runs a package's tests against mutants that a person wrote: one place of the source said otherwise. A mutant
// is laid over the tree (go test -overlay); the tree itself never changes. It is for tests only.
package byhand

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// within is set for the tests of a mutant, which run no mutants themselves.
const within = "ASSAY_MUTANT"

// A Mutant is wrong code that somebody could write.
type Mutant struct {
	Name     string
	Package  string // whose tests must notice, from root; "" is root itself
	File     string // from root
	Old, New string // Old stands in the file once
}

// Run runs go test with args on each mutant's package, which is to fail. Root is a folder, from where the test runs.
func Run(t *testing.T, root string, mutants []Mutant, args ...string) {
	t.Helper()
	if testing.Short() || os.Getenv(within) != "" {
		t.Skip("long, and never within itself")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			overlay := m.lay(t, root)
			argv := append([]string{"test", "-vet=off", "-failfast", "-timeout=10m", "-overlay", overlay}, args...)
			cmd := exec.CommandContext(t.Context(), "go", append(argv, "./"+m.Package)...)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), within+"=1", "RAPID_NOFAILFILE=true", "RAPID_SHRINKTIME=0s")
			out, err := cmd.CombinedOutput()
			switch {
			case strings.Contains(string(out), "build failed"), strings.Contains(string(out), "setup failed"):
				t.Fatalf("does not build:\n%s", out)
			case err == nil:
				t.Errorf("nothing tells it from the right one: %q in place of %q in %s", m.New, m.Old, m.File)
			}
		})
	}
}

// Said checks that each mutant names a place of the source as it is, once.
func Said(t *testing.T, root string, mutants []Mutant) {
	t.Helper()
	for _, m := range mutants {
		src, err := os.ReadFile(filepath.Join(root, m.File))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), m.Old); n != 1 {
			t.Errorf("%s: %s has %q %d times, want once: say the mutant anew", m.Name, m.File, m.Old, n)
		}
	}
}

// lay writes the mutant beside the tree and gives the overlay that puts it in its place.
func (m Mutant) lay(t *testing.T, root string) string {
	t.Helper()
	file := filepath.Join(root, m.File)
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(src), m.Old); n != 1 {
		t.Fatalf("%s has %q %d times, want once: say the mutant anew", m.File, m.Old, n)
	}
	dir := t.TempDir()
	wrong, overlay := filepath.Join(dir, "wrong.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(src), m.Old, m.New, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {file: wrong}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
