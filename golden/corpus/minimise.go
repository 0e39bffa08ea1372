package corpus

import "context"

// includes says whether have holds all of want.
func includes(have, want map[pair]bool) bool {
	for p := range want {
		if !have[p] {
			return false
		}
	}
	return true
}

// places lists the ops of a program: group and place in it.
func (p program) places() [][2]int {
	var out [][2]int
	for g := range p.groups {
		for i := range p.groups[g].ops {
			out = append(out, [2]int{g, i})
		}
	}
	return out
}

// less gives the program without the ops at places, which are in order.
func (p program) less(places [][2]int) program {
	// From the end, so that what was named before keeps its place; a group that goes shifts only those after it.
	for i := len(places) - 1; i >= 0; i-- {
		p = p.without(places[i][0], places[i][1])
	}
	return p
}

// minimise takes from each program what its new pairs do not need: first each op by itself, to see which may go, then as many
// of those together as leave all of them. All programs go through a round together, since an assembler's start is what
// costs.
func minimise(ctx context.Context, t *Tools, ps []program, news []map[pair]bool) ([]program, error) {
	type variant struct{ of, place int }
	var vs []variant
	var cs []code
	for i, p := range ps {
		for j, at := range p.places() {
			if p.ops() > 1 {
				vs, cs = append(vs, variant{i, j}), append(cs, p.without(at[0], at[1]).write())
			}
		}
	}
	got, err := pairsOf(ctx, t, cs)
	if err != nil {
		return ps, err
	}
	loose := make([][][2]int, len(ps))
	for k, v := range vs {
		if includes(got[k], news[v.of]) {
			loose[v.of] = append(loose[v.of], ps[v.of].places()[v.place])
		}
	}
	out := append([]program{}, ps...)
	open := map[int]bool{}
	for i, l := range loose {
		if len(l) == ps[i].ops() {
			loose[i] = l[1:] // something must stay
		}
		open[i] = len(loose[i]) > 0
	}
	for range 5 {
		var at []int
		var cs []code
		var tried []program
		for i := range ps {
			if open[i] {
				q := ps[i].less(loose[i])
				at, cs, tried = append(at, i), append(cs, q.write()), append(tried, q)
			}
		}
		if len(at) == 0 {
			break
		}
		got, err := pairsOf(ctx, t, cs)
		if err != nil {
			return out, err
		}
		for k, i := range at {
			if includes(got[k], news[i]) {
				out[i], open[i] = tried[k], false
				continue
			}
			loose[i] = loose[i][:len(loose[i])/2]
			open[i] = len(loose[i]) > 0
		}
	}
	return out, nil
}
