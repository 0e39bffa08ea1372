package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/sdc"
)

// Suite gives the ids of the checks whose pass earns a level, in run order; none for NoLevel.
func Suite(level checks.Level) []string {
	var out []string
	for _, c := range All() {
		if slices.Contains(c.Suites, level) {
			out = append(out, c.ID)
		}
	}
	return out
}

// Coverage sorts the checks of a level's suite into those that findings answer and those they do not. A check is tested
// when it gave a finding and none of its findings is Unknown.
func Coverage(level checks.Level, fs []checks.Finding) (tested, notTested []string) {
	seen, unknown := map[string]bool{}, map[string]bool{}
	for _, f := range fs {
		seen[f.Check] = true
		unknown[f.Check] = unknown[f.Check] || f.Verdict == checks.Unknown
	}
	for _, id := range Suite(level) {
		if seen[id] && !unknown[id] {
			tested = append(tested, id)
		} else {
			notTested = append(notTested, id)
		}
	}
	return tested, notTested
}

// Digest names a suite as it is under a policy: its checks, their revisions, modes and thresholds, and where golden kernels
// run their code, sizes and goldens. It changes when, and only when, a pass would mean something else; other parts of the
// policy leave it alone.
func Digest(level checks.Level, p policy.Policy) string {
	type entry struct {
		ID         string
		Revision   int
		Off        bool
		Thresholds map[string]any
	}
	suite := struct {
		Level  string
		Checks []entry
		Golden string `json:",omitempty"`
	}{Level: level.String()}
	if runs(p, sdc.ID) {
		suite.Golden = sdc.Suite(level, p.Golden)
	}
	for _, id := range Suite(level) {
		c, _ := Lookup(id)
		e := entry{ID: id, Revision: c.Revision, Off: !runs(p, id), Thresholds: map[string]any{}}
		for _, t := range c.Thresholds {
			e.Thresholds[t.Path] = t.Value(p)
		}
		suite.Checks = append(suite.Checks, e)
	}
	text, err := json.Marshal(suite)
	if err != nil {
		panic(fmt.Sprintf("catalog: a threshold that JSON cannot hold: %v", err)) // all are numbers, text and truth values
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Explain gives a check's text for check explain; false for an id that does not exist.
func Explain(id string) (string, bool) {
	c, ok := Lookup(id)
	if !ok {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n%s\n\n", c.ID, c.Title, c.Doc)
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-12s%s\n", name, text)
		}
	}
	row("unit", c.Unit)
	row("source", c.Source)
	row("applies to", c.Applies)
	row("action", c.Action)
	row("cost", c.Cost)
	row("suites", suites(c))
	for i, t := range c.Thresholds {
		name := ""
		if i == 0 {
			name = "policy"
		}
		row(name, fmt.Sprintf("%s (default %s)", t.Path, t.shown()))
	}
	b.WriteString("\nhow others treat the same signal\n")
	row("NHC", c.Neighbours.NHC)
	row("gpud", c.Neighbours.Gpud)
	row("NVSentinel", c.Neighbours.NVSentinel)
	row("DCGM health", c.Neighbours.DCGM)
	return b.String(), true
}

func suites(c Check) string {
	var out []string
	for _, l := range c.Suites {
		out = append(out, l.String())
	}
	switch {
	case out == nil && OfLog(c.ID):
		return "none; it judges events as they come"
	case out == nil:
		return "none; it judges when it is asked to"
	}
	return strings.Join(out, ", ")
}
