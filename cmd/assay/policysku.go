package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/client"
)

// A skuView is all that is known of a product.
type skuView struct {
	Profiles  []policy.Profile  `json:"profiles"`
	Learned   []policy.Learned  `json:"learned"`
	Overrides []policy.Override `json:"overrides"`
}

func (a *app) policyOfSKU(ctx context.Context, c *client.Client, sku string) error {
	p, err := c.Policy(ctx)
	if err != nil {
		return err
	}
	learned, err := c.Learned(ctx)
	if err != nil {
		return err
	}
	v := skuView{Profiles: policy.FindProfiles(sku)}
	for _, l := range learned {
		if policy.MatchSKU(sku, l.SKU) {
			v.Learned = append(v.Learned, l)
		}
	}
	for _, o := range p.Overrides {
		for _, pattern := range o.SKU {
			if policy.MatchSKU(pattern, sku) || policy.MatchSKU(sku, pattern) {
				v.Overrides = append(v.Overrides, o)
				break
			}
		}
	}
	if len(v.Profiles)+len(v.Learned)+len(v.Overrides) == 0 {
		return &usageError{fmt.Sprintf("nothing is known of a product %q", sku), "built in are " + strings.Join(profileNames(), ", ")}
	}
	return a.emit(v, func() error { return a.showSKU(v) })
}

func profileNames() []string {
	var out []string
	for _, p := range policy.Profiles() {
		out = append(out, p.Name)
	}
	return out
}

func (a *app) showSKU(v skuView) error {
	for _, p := range v.Profiles {
		fmt.Fprintf(a.out, "%s (%s), built in:\n", p.Name, strings.Join(p.SKU, ", "))
		var rows [][]string
		for _, f := range p.Facts {
			sets := "-"
			if f.Path != "" {
				sets = f.Path
				if f.Whole {
					sets += ", on whole boards"
				}
			}
			rows = append(rows, []string{f.What, f.Value, sets, f.Source})
		}
		if err := a.rows([]string{"what", "value", "starts", "source"}, rows); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	for _, l := range v.Learned {
		fmt.Fprintf(a.out, "%s, shown by its %s:\n", clean(l.SKU), count(l.Nodes, "node"))
		var rows [][]string
		for _, f := range l.Values {
			holds := "no"
			if f.Holds {
				holds = "yes"
			}
			rows = append(rows, []string{f.Path, clean(f.Value), fmt.Sprintf("%d of %d", f.Nodes, f.Of), holds, dash(clean(hostlist.Compress(f.Others)))})
		}
		if err := a.rows([]string{"value", "most show", "nodes", "is the rule", "others"}, rows); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	for _, o := range v.Overrides {
		fmt.Fprintf(a.out, "Override %s for %s %s sets %s\n", clean(o.Name), clean(strings.Join(o.SKU, ", ")), clean(strings.Join(o.Nodes, ",")), clean(o.Set.JSON()))
	}
	return nil
}
