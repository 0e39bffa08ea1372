// Package policyfile reads and prints a policy as the YAML file that a fleet owner keeps.
package policyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strictyaml"
)

// Load reads a policy file. What it does not set keeps its default. The error is a *strictyaml.Error that holds every
// fault found, in form and in value, with its line; file is only the name that it gives.
func Load(file string, data []byte) (policy.Policy, error) {
	p := policy.Default()
	lines, err := strictyaml.DecodeWithLines(file, data, &p)
	faults, ok := err.(*strictyaml.Error)
	switch {
	case err != nil && !ok:
		return policy.Policy{}, err
	case faults == nil:
		faults = &strictyaml.Error{File: file}
	}
	// A value that could not be read kept its default, which has no fault: what is found now adds to what was found.
	read := faults.Faults
	for _, f := range Validate(p) {
		if f.Message == policy.SetsNothing && slices.ContainsFunc(read, func(r strictyaml.Fault) bool { return strings.HasPrefix(r.Path, f.Path) }) {
			continue // it would, could it be read
		}
		line, column := lines.At(f.Path)
		faults.Add(line, column, f.Path, "%s", f.Message)
	}
	if err := faults.Err(); err != nil {
		return policy.Policy{}, err
	}
	return p, nil
}

// Validate lists every fault of p: those of policy.Validate, and checks that do not exist, there or in an override.
func Validate(p policy.Policy) []policy.Fault {
	faults := policy.Validate(p)
	known := append(catalog.IDs(), p.UserIDs()...)
	unknown := func(path, id string) {
		if !slices.Contains(known, id) {
			faults = append(faults, policy.Fault{Path: path + "." + id, Message: fmt.Sprintf("no such check; there are %s", strings.Join(known, ", "))})
		}
	}
	for id := range p.Checks {
		unknown("checks", id)
	}
	for i, o := range p.Overrides {
		set, _ := o.Set.Tree()["checks"].(map[string]any)
		for id := range set {
			unknown(fmt.Sprintf("overrides[%d].set.checks", i), id)
		}
	}
	slices.SortStableFunc(faults, func(a, b policy.Fault) int { return cmp.Compare(a.Path, b.Path) })
	return faults
}
