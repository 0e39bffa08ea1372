package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
)

var heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)

// anchors lists the sections of a document by the names that links use, as GitHub makes them.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(string(data), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f:
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		set[name] = true
	}
	return set
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every link between documents leads to a file, and to a section, that is there.
func TestDocumentLinks(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no documents", err)
	}
	for _, file := range append(files, "../README.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			} else if anchor != "" && !anchors(t, path)[anchor] {
				t.Errorf("%s links to %s, and there is no such section", file, m[1])
			}
		}
	}
}

var pageCall = regexp.MustCompile(`\b(?:page\(|pageOnce\([^,]+, )"([a-z_]+)"`)

// Every reason the control plane pages for is in the runbook of pages.
func TestEveryPageHasARunbook(t *testing.T) {
	runbooks, err := os.ReadFile("docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || !under(s.dir, "coordinator") {
			continue
		}
		data, err := os.ReadFile("../" + s.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pageCall.FindAllStringSubmatch(string(data), -1) {
			reasons[m[1]] = true
		}
	}
	if len(reasons) < 5 {
		t.Fatalf("found only the reasons %v", reasons)
	}
	for reason := range reasons {
		if !strings.Contains(string(runbooks), "`"+reason+"`") {
			t.Errorf("runbooks.md does not say what a page for %q means", reason)
		}
	}
}

var caseID = regexp.MustCompile(`(?m)^## Case ([a-z_]+)$`)

// Every check that can open a case has a section for it, and no other has.
func TestEveryCheckHasARunbook(t *testing.T) {
	runbooks, err := os.ReadFile("docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, m := range caseID.FindAllStringSubmatch(string(runbooks), -1) {
		sections[m[1]] = true
	}
	for _, id := range catalog.IDs() {
		if !sections[id] {
			t.Errorf("runbooks.md has no section \"Case %s\"", id)
		}
		delete(sections, id)
	}
	delete(sections, lifecycle.CauseOrder)
	for id := range sections {
		t.Errorf("runbooks.md has a section \"Case %s\", and there is no such check", id)
	}
}

var makeCall = regexp.MustCompile("(?m)(?:^ {4}|^\\$ |`)make ([a-z-]+)")

// A target of make that a document names is one.
func TestDocumentsNameTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../README.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range makeCall.FindAllStringSubmatch(string(data), -1) {
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m[1]) + `:`).Match(makefile) {
				t.Errorf("%s names make %s, which there is not", file, m[1])
			}
		}
	}
}

// The shell scripts of the house can be read by bash.
func TestScriptsParse(t *testing.T) {
	scripts, err := filepath.Glob("../.ci/*")
	if err != nil {
		t.Fatal(err)
	}
	bench, err := filepath.Glob("bench/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	if scripts = append(scripts, bench...); len(scripts) < 6 {
		t.Fatalf("found only %v", scripts)
	}
	for _, script := range scripts {
		info, err := os.Stat(script)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed", script)
		}
		if out, err := exec.Command("bash", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("bash -n %s: %v\n%s", script, err, out)
		}
	}
}

// The Slurm snippet has nothing that self-test would hold against it but what only a node can show.
func TestSlurmSnippetPassesSelfTest(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the hook")
	}
	binary := build(t, "assay-hook")
	dir := filepath.Dir(binary)
	data, err := os.ReadFile("slurm/slurm.conf.snippet")
	if err != nil {
		t.Fatal(err)
	}
	// The hooks and the reboot program as they will be on a node: here, the one just built and /bin/true.
	text := strings.ReplaceAll(string(data), "/usr/libexec/assay/", dir+"/")
	text = strings.ReplaceAll(text, "/usr/sbin/reboot", "/bin/true")
	for _, hook := range []string{"prolog", "epilog", "healthcheck"} {
		if err := os.Link(binary, filepath.Join(dir, hook)); err != nil {
			t.Fatal(err)
		}
	}
	conf := filepath.Join(dir, "slurm.conf")
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "self-test", "--slurm-conf", conf, "--slurm-version", "22.05.8", "--no-agent").CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "FAULT") && os.Geteuid() != 0 && strings.Contains(line, "somebody else owns it") {
			continue // not root's here, but root's where it is installed
		}
		if !strings.HasPrefix(line, "ok ") && !strings.HasPrefix(line, "assay-hook ") && !strings.HasPrefix(line, "0 faults, 0 unknown, 0 warnings") {
			t.Errorf("self-test: %s", line)
		}
	}
	if err != nil && os.Geteuid() == 0 {
		t.Errorf("self-test: %v", err)
	}
}
