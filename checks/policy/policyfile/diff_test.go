package policyfile

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks/policy"
)

func TestDiff(t *testing.T) {
	load := func(text string) policy.Policy {
		p, err := Load("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{"nothing", "mode: act", "mode: act", ""},
		{"a value", "mode: act", "ecc: {require_enabled: false}", "mode: act>observe\necc.require_enabled: true>false"},
		{"a key of a map comes, another goes", "xid: {actions: {63: watch, 79: rma}}", "xid: {actions: {63: none, 64: watch}}", "xid.actions.63: watch>none\nxid.actions.79: rma>\nxid.actions.64: >watch"},
		{"a check's action", "checks: {ecc: {mode: act}}", "checks: {ecc: {mode: act, action: drain, share: 5%}}", "checks.ecc.action: >drain\nchecks.ecc.share: >0.05"},
		{"an override, by its name", "overrides: [{name: a, sku: [H100], set: {mode: act}}]", "overrides: [{name: a, sku: [H100, H200], set: {mode: act, xid: {actions: {7: rma}}}}]",
			"overrides.a.sku: [\"H100\"]>[\"H100\", \"H200\"]\noverrides.a.set.xid.actions.7: >rma"},
		{"the order of overrides", "overrides: [{name: a, sku: [H100], set: {mode: act}}, {name: b, sku: [H100], set: {mode: off}}]",
			"overrides: [{name: b, sku: [H100], set: {mode: off}}, {name: a, sku: [H100], set: {mode: act}}]", "overrides: [a, b]>[b, a]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range Diff(load(tt.old), load(tt.new)) {
				got = append(got, c.Path+": "+c.Old+">"+c.New)
			}
			want := strings.ReplaceAll(tt.want, `"H100"`, text2yaml("H100"))
			want = strings.ReplaceAll(want, `"H200"`, text2yaml("H200"))
			if text := strings.Join(got, "\n"); text != want {
				t.Errorf("got\n%s\nwant\n%s", text, want)
			}
		})
	}
}

// Two policies that print alike differ in nothing, and two that do not differ in something.
func TestDiffIsEmptyWhenThePrintIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		if d := Diff(a, a); len(d) != 0 {
			t.Fatalf("a policy differs from itself: %v", d)
		}
		if same, d := string(Print(a)) == string(Print(b)), Diff(a, b); same != (len(d) == 0) {
			t.Fatalf("printed alike: %t, and yet %s", same, fmt.Sprint(d))
		}
	})
}
