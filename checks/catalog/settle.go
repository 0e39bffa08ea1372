package catalog

import (
	"fmt"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// settle gives faults the action that policy sets for their check, and says so in their reason. Package policy says by
// what rule: see policy.Check. It changes fs.
func settle(fs []checks.Finding, p policy.Policy) []checks.Finding {
	for i, f := range fs {
		name := p.Checks[f.Check].Action
		if name == "" || f.Verdict != checks.Fail {
			continue
		}
		var want checks.Action
		if err := want.UnmarshalText([]byte(name)); err != nil || want == f.Action {
			continue // Validate refuses a name that is none
		}
		switch {
		case !want.Harmless():
			f.Reason += fmt.Sprintf(" (by policy %s, not %s)", want, f.Action)
			f.Action = want
		case f.Hard:
			f.Reason += fmt.Sprintf(" (policy's %s does not hold for a hard fault)", want)
		default:
			f.Reason += fmt.Sprintf(" (a fault, %s; by policy only %s)", f.Action, want)
			f.Verdict, f.Action = checks.NotApplicable, want
		}
		fs[i] = f
	}
	return fs
}
