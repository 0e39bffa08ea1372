package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks/policy"
)

// Page gives the documentation page of all checks, in Markdown.
func Page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	table(&b, "check", "what it judges", "unit", "thresholds (default)", "action of its faults", "cost", "source")
	for _, c := range All() {
		row(&b, link(c.ID), c.Title, c.Unit, thresholds(c), c.Action, c.Cost, c.Source)
	}
	b.WriteString(pageNeighbours)
	table(&b, "check", "NHC", "gpud", "NVSentinel", "DCGM health")
	for _, c := range All() {
		n := c.Neighbours
		row(&b, link(c.ID), n.NHC, n.Gpud, n.NVSentinel, n.DCGM)
	}
	b.WriteString("\n## Each check\n")
	for _, c := range All() {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\nApplies to: %s. Suites: %s.\n", c.ID, escape(c.Doc), escape(c.Applies), suites(c))
	}
	return b.String()
}

const pageHead = `# Checks

Made from the program by ` + "`go test ./packaging -run ChecksPage -update`" + `: change package catalog, not this page.

What each check reads, by what it judges, and what its faults ask for. Every threshold and action may be set by policy,
for the fleet, a product or a node ([policy](policy.md)). ` + "`assay-agent check explain ID`" + ` prints the same for one
check. No check takes N/A for zero, nor what could not be read for healthy.

`

const pageNeighbours = `
## How others treat the same signal

NHC is mej/nhc with the profiles of Azure/azurehpc-health-checks; DCGM health is its passive watches, not its diagnostic.
"none" means that the tool does not look at it.

`

func table(b *strings.Builder, columns ...string) {
	row(b, columns...)
	b.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
}

func row(b *strings.Builder, cells ...string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(strings.ReplaceAll(escape(c), "\n", " "), "|", "\\|") + " ")
	}
	b.WriteString("|\n")
}

// escape keeps Markdown from reading a check's text as anything but text; code in backquotes stays.
func escape(s string) string { return strings.NewReplacer("<", "&lt;", "*", "\\*").Replace(s) }

func link(id string) string { return fmt.Sprintf("[%s](#%s)", id, id) }

func thresholds(c Check) string {
	var out []string
	for _, t := range c.Thresholds {
		out = append(out, fmt.Sprintf("`%s` (%s)", t.Path, t.shown()))
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

// shown is the threshold's built-in value, for people.
func (t Threshold) shown() string {
	value := t.Value(policy.Default())
	if limits, ok := value.(map[string]policy.Limit); ok {
		var out []string
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			out = append(out, name+" "+limits[name].String())
		}
		return strings.Join(out, "; ")
	}
	text := fmt.Sprint(value)
	switch text {
	case "", "map[]", "[]":
		return "not set"
	}
	return text
}
