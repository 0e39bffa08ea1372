package hostlog

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestFixtures(t *testing.T) {
	judge := func(line string) []checks.Finding {
		e, ok := Parse(line)
		if !ok {
			t.Fatalf("not read: %s", line)
		}
		return []checks.Finding{Judge(e, policy.Default().HostLog)}
	}
	checktest.Events(t, ID, judge("Memory cgroup out of memory: Killed process 4242 (python3) total-vm:1kB"),
		judge("Watchdog detected hard LOCKUP on cpu 7"), []checks.Finding{Judge(Event{}, policy.Default().HostLog)})
}
