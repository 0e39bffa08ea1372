package topo

import (
	"slices"
	"strconv"
	"strings"
)

// blockSizes reads BlockSizes=18,36,72: the base size, then powers of two of it.
func (r *reader) blockSizes(at int, s string) {
	if r.sizeAt != 0 {
		r.errorf(at, "BlockSizes was given before, on line %d; this one is left out", r.sizeAt)
		return
	}
	r.sizeAt = at
	for w := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(w))
		switch {
		case err != nil || n < 1 || n > 1<<20:
			r.errorf(at, "BlockSizes: %q is no size of a block", clip(w))
		case len(r.sizes) > 0 && !powerOfTwo(n, r.sizes[0]):
			r.errorf(at, "BlockSizes: %d is not %d times a power of two", n, r.sizes[0])
		case slices.Contains(r.sizes, n):
			r.oddf(at, "BlockSizes: %d stands twice", n)
		default:
			r.sizes = append(r.sizes, n)
		}
	}
	if len(r.sizes) > 1 {
		slices.Sort(r.sizes[1:])
	}
}

func powerOfTwo(n, base int) bool {
	k := n / base
	return n%base == 0 && k > 1 && k&(k-1) == 0
}

// blocks makes NVLink domains of the BlockName lines. In a file without switches they are also its leaves: neighbours in
// the file make the higher blocks that BlockSizes names, and one switch over all stands for the network between them,
// since segments of one job may lie in different blocks.
func (r *reader) blocks() {
	for _, b := range r.block {
		r.addDomain(b.name, b.nodes)
	}
	if r.sizeAt != 0 && len(r.block) == 0 {
		r.errorf(r.sizeAt, "BlockSizes without a block")
	}
	if len(r.all) > 0 || len(r.block) == 0 {
		return
	}
	base := 0
	if len(r.sizes) > 0 {
		base = r.sizes[0]
	}
	for _, b := range r.block {
		if len(b.nodes) > 0 && len(b.nodes) < base {
			r.oddf(b.at, "block %s has fewer nodes (%d) than the base block (%d)", b.name, len(b.nodes), base)
		}
		v := r.vertex(b.name, b.at)
		v.nodes, v.said = b.nodes, b.said
	}
	level, per := slices.Clone(r.all), 1 // per: base blocks under one of level
	for _, size := range r.sizes[min(1, len(r.sizes)):] {
		n := size / base / per
		per = size / base
		level = r.group(level, n)
	}
	r.group(level, len(level))
}

// group puts n neighbours under one vertex each, and returns these. One alone stays as it is.
func (r *reader) group(level []*vertex, n int) []*vertex {
	var up []*vertex
	for part := range slices.Chunk(level, max(n, 1)) {
		if len(part) == 1 {
			up = append(up, part[0])
			continue
		}
		name := first(part[0]) + ".." + last(part[len(part)-1])
		for r.byName[name] != nil {
			name += "+"
		}
		v := r.vertex(name, part[0].at)
		v.aggregate = true
		for _, c := range part {
			c.parent = v
			v.children = append(v.children, c)
		}
		up = append(up, v)
	}
	return up
}

func first(v *vertex) string {
	for len(v.children) > 0 {
		v = v.children[0]
	}
	return v.name
}

func last(v *vertex) string {
	for len(v.children) > 0 {
		v = v.children[len(v.children)-1]
	}
	return v.name
}
