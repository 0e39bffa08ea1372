package scheduler

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// epoch is when the tests take place.
var epoch = time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)

// treeOf writes and reads a tree with leaves of the sizes given, aggs leaves to an aggregation switch, and NVLink domains of
// so many nodes, 0 for none.
func treeOf(sizes []int, aggs, domain int) *topo.Tree {
	var b strings.Builder
	n := 0
	for i, size := range sizes {
		first := n + 1
		n += size
		fmt.Fprintf(&b, "SwitchName=leaf%d Nodes=", i)
		if size > 0 {
			fmt.Fprintf(&b, "n[%d-%d]", first, n)
		}
		b.WriteByte('\n')
		for lo := first; domain > 0 && lo <= n; lo += domain {
			fmt.Fprintf(&b, "BlockName=nvl%d Nodes=n[%d-%d]\n", lo, lo, min(lo+domain-1, n))
		}
	}
	var up []string
	for i := 0; i < len(sizes); i += aggs {
		up = append(up, fmt.Sprint("agg", i/aggs))
		fmt.Fprintf(&b, "SwitchName=agg%d Switches=leaf[%d-%d]\n", i/aggs, i, min(i+aggs, len(sizes))-1)
	}
	if len(up) > 1 {
		fmt.Fprintf(&b, "SwitchName=core Switches=%s\n", strings.Join(up, ","))
	}
	tr, _ := topo.Parse(b.String(), nil)
	return tr
}

// certified is a fleet whose every node has eight GPUs and a certificate of 12 hours.
func certified(t testing.TB, tr *topo.Tree, shape *topo.Shape) *Fleet {
	t.Helper()
	f := NewFleet(tr, epoch)
	for i := range int32(len(tr.Nodes)) {
		if err := f.See(i, shape, 0); err != nil {
			t.Fatal(err)
		}
		f.Certify(i, Certificate{Serial: uint64(i + 1), Level: checks.Quick, GPUs: shape.All(), Issued: epoch, Expires: epoch.Add(12 * time.Hour)})
	}
	return f
}

var eight = topo.NewShape("h100", 8, true)

// rebuilt is a fleet with the same facts, told once.
func rebuilt(t rapid.TB, s *Snapshot) *Fleet {
	t.Helper()
	f := NewFleet(s.Tree(), s.Now())
	for i := range int32(s.Len()) {
		n := s.Node(i)
		if n.Shape != nil {
			if err := f.See(i, n.Shape, n.Grade); err != nil {
				t.Fatal(err)
			}
		}
		if n.Certificate.Level != checks.NoLevel {
			f.Certify(i, n.Certificate)
		}
		if n.Bar != nil {
			f.Bar(i, *n.Bar)
		}
	}
	for r := range s.Running() {
		if err := f.Start(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range s.Reservations() {
		f.Reserve(r)
	}
	return f
}

// same fails the test where two snapshots differ in a fact or in anything derived from one.
func same(t rapid.TB, a, b *Snapshot) {
	t.Helper()
	if a.now != b.now || a.work != b.work || !slices.Equal(a.full, b.full) || !slices.Equal(a.idle, b.idle) {
		t.Fatalf("now %d and %d, work %d and %d, full %v and %v, idle %v and %v", a.now, b.now, a.work, b.work, a.full, b.full, a.idle, b.idle)
	}
	if a.stride == b.stride && !slices.Equal(a.counts, b.counts) {
		t.Fatalf("counts\n%v\n%v", a.counts, b.counts)
	}
	for c := range int32(a.lay.cells()) {
		x, y := a.cell(c), b.cell(c)
		for i := range x.nodes {
			x.nodes[i].parts, y.nodes[i].parts = sortedParts(x.nodes[i].parts), sortedParts(y.nodes[i].parts)
		}
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("cell %d\n%+v\n%+v", c, x, y)
		}
	}
	for k := range a.blocks {
		x, y := *a.blocks[k], *b.blocks[k]
		x.cells, y.cells = [blockCells]*cell{}, [blockCells]*cell{}
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("block %d\n%+v\n%+v", k, x, y)
		}
	}
}

func sortedParts(ps []Part) []Part {
	ps = slices.Clone(ps)
	slices.SortFunc(ps, func(a, b Part) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return ps
}
