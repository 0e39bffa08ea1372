package packaging

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks/catalog"
)

var update = flag.Bool("update", false, "write the pages that are made from the program")

// The page of checks is made from the catalog, and has a row of each table and a section for every check.
func TestChecksPageIsTheCatalog(t *testing.T) {
	const file = "docs/checks.md"
	want := catalog.Page()
	for _, id := range catalog.IDs() {
		if n := strings.Count(want, "\n| ["+id+"](#"+id+") |"); n != 2 {
			t.Errorf("%s has %d rows, want one of each table", id, n)
		}
		if !strings.Contains(want, "\n### "+id+"\n") {
			t.Errorf("%s has no section", id)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s is not what the catalog says (%v): run go test ./packaging -run ChecksPage -update", file, err)
	}
}
