package fabric

import (
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestJudgeManager(t *testing.T) {
	for _, tt := range []struct {
		name    string
		m       Manager
		require bool
		verdict checks.Verdict
		action  checks.Action
		reason  string
	}{
		{"runs", Manager{Have: checks.Read, Switches: 4, Running: true}, true, checks.Pass, checks.None, "the fabric manager runs"},
		{"does not run", Manager{Have: checks.Read, Switches: 4}, true, checks.Fail, checks.FixConfig, "does not run on a node with 4 NVSwitches"},
		{"does not run, and policy wants none", Manager{Have: checks.Read, Switches: 6}, false, checks.Pass, checks.Watch, "does not run on a node with 6"},
		{"no switch", Manager{Have: checks.NotSupported, Running: true}, true, checks.NotApplicable, checks.None, "no NVSwitch"},
		{"procfs not read", Manager{Err: "permission denied", Running: true}, true, checks.Unknown, checks.None, "not read: permission denied"},
		{"never asked", Manager{}, true, checks.Unknown, checks.None, "fabric manager not read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := JudgeManager(tt.m, policy.Fabric{RequireManager: tt.require})
			if f.Verdict != tt.verdict || f.Action != tt.action || f.Hard || !strings.Contains(f.Reason, tt.reason) || f.Check != ID || f.Subject.Kind != checks.KindNode {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestManagerFixtures(t *testing.T) {
	one := func(m Manager) []checks.Finding {
		return []checks.Finding{JudgeManager(m, policy.Default().Fabric)}
	}
	checktest.Three(t, ID, one(Manager{Have: checks.Read, Switches: 4, Running: true}), one(Manager{Have: checks.Read, Switches: 4}), one(Manager{Err: "timeout"}))
}
