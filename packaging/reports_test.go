package packaging

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	reportRow  = regexp.MustCompile(`(?m)^\| ([ABC])(\d+)(?:–[AB](\d+))?([^|]*)\| [^|]+ \| ([^|]+) \|$`)
	reportTest = regexp.MustCompile("`([a-z0-9/-]+)\\.(Test\\w+)`")
)

// Every user report has one row, which names tests that exist or says why there is none.
func TestUserReports(t *testing.T) {
	page, err := os.ReadFile("docs/user-reports.md")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := os.ReadFile("../checks/catalog/testdata/reports")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range reportRow.FindAllStringSubmatch(string(page), -1) {
		first, _ := strconv.Atoi(m[2]) // digits, by the expression
		last := first
		if m[3] != "" {
			last, _ = strconv.Atoi(m[3])
		}
		for n := first; n <= last; n++ {
			id := fmt.Sprintf("%s%d", m[1], n)
			if seen[id] {
				t.Errorf("%s has two rows", id)
			}
			seen[id] = true
			if strings.Contains(m[5], "`checks/catalog.TestUserReports`") && !strings.Contains(string(cases), "\n# "+id+" (") && !strings.HasPrefix(string(cases), "# "+id+" (") {
				t.Errorf("%s names checks/catalog.TestUserReports, which has no case of it", id)
			}
		}
		tests := reportTest.FindAllStringSubmatch(m[5], -1)
		if len(tests) == 0 && !strings.HasPrefix(m[5], "does not apply: ") {
			t.Errorf("%s%s names no test, nor says why it does not apply: %s", m[1], m[2], m[5])
		}
		for _, ref := range tests {
			if !hasTest(t, ref[1], ref[2]) {
				t.Errorf("%s%s names %s.%s, which does not exist", m[1], m[2], ref[1], ref[2])
			}
			if m[1] == "C" && ref[2] == "TestStories" && !hasStory(t, ref[1], m[2], m[4]) {
				t.Errorf("C%s names the stories of %s, of which none has its number: %s", m[2], ref[1], m[4])
			}
		}
	}
	for letter, most := range map[string]int{"A": 41, "B": 66, "C": 40} {
		for n := 1; n <= most; n++ {
			if id := fmt.Sprintf("%s%d", letter, n); !seen[id] {
				t.Errorf("%s has no row", id)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^# ([AB]\d+) `).FindAllStringSubmatch(string(cases), -1) {
		if !strings.Contains(string(page), "| "+m[1]+" ") {
			t.Errorf("checks/catalog/testdata/reports has a case of %s, which has no row", m[1])
		}
	}
}

// hasStory reports whether a story of that package says in a comment that it is of that report: by the report's number, or by
// a number under which the other project has it.
func hasStory(t *testing.T, dir, report, title string) bool {
	t.Helper()
	numbers := regexp.MustCompile(`\d{2,}`).FindAllString(title, -1)
	comment := regexp.MustCompile(`(?m)^#.*(\b[Rr]eports? (\d+ and )?` + report + `\b|\b(` + strings.Join(append(numbers, "no number"), "|") + `)\b)`)
	found := false
	err := filepath.WalkDir(filepath.Join("..", filepath.FromSlash(dir), "testdata"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found = found || comment.Match(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// hasTest reports whether the package in that folder has a test of that name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
