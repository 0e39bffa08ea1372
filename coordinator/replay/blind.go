package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/policy/policyfile"
)

// blind says what history cannot tell of the new policy.
func blind(in Input, r Report) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case len(in.Entries) == 0:
		say("history holds nothing of this time")
	case in.Entries[0].At.After(in.From):
		say("history begins at %s; what was before is no longer kept", in.Entries[0].At.Format(time.RFC3339))
	}
	say("history keeps faults, not readings that passed: what only a stricter threshold finds is not counted")
	say("a fault told again in the same boot is kept once, so counts are low; nodes and reasons are not")
	for _, id := range catalog.IDs() {
		if in.Now.ModeOf(id) == policy.Off && in.New.ModeOf(id) != policy.Off {
			say("%s is off now and found nothing to judge", id)
		}
	}
	if paths := thresholds(policyfile.Diff(in.Now, in.New)); len(paths) > 0 {
		var asThen []string
		for _, c := range r.Cases {
			check, _, _ := strings.Cut(c.Reason, " ")
			if c.AsThen && !slices.Contains(asThen, check) {
				asThen = append(asThen, check)
			}
		}
		slices.Sort(asThen)
		say("thresholds differ (%s)", strings.Join(paths, ", "))
		if len(asThen) > 0 {
			say("of %s the readings were not kept: these faults count as they were judged then", strings.Join(asThen, ", "))
		}
	}
	if versions := others(in); len(versions) > 0 {
		say("policies were put in force meanwhile (%s): what was found went by them", strings.Join(versions, ", "))
	}
	say("the guard is not played: it would have taken as many as its budgets allow, and held the rest back")
	return out
}

// thresholds are the paths of changes that are neither a mode, an action nor the fleet's own.
func thresholds(changes []policyfile.Change) []string {
	var out []string
	for _, c := range changes {
		section, _, _ := strings.Cut(c.Path, ".")
		switch section {
		case "mode", "checks", "overrides", "agent", "hooks", "certificate", "guard", "lifecycle", "baseline":
			continue
		}
		if !strings.Contains(c.Path, ".actions.") {
			out = append(out, c.Path)
		}
	}
	return out
}

// others are the policies that were put in force in the time looked at.
func others(in Input) []string {
	var out []string
	for _, e := range in.Entries {
		if v, ok := strings.CutPrefix(e.Event, "policy version="); ok && !e.At.Before(in.From) && !e.At.After(in.To) {
			version, _, _ := strings.Cut(v, " ")
			out = append(out, "version "+version)
		}
	}
	return out
}
