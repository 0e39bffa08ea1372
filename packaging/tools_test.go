package packaging

import (
	"os"
	"os/exec"
	"testing"
)

// tool finds a program of the system. Without it the test is skipped on a developer's machine and fails in CI, where
// .ci/deps has installed it.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed: %v", name, err)
		}
		t.Skipf("%s is not installed (make deps)", name)
	}
	return path
}

// run runs a program and returns all that it prints; any exit but 0 fails the test.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(tool(t, name), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
