package topo

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// TestStories reads topologies, good and odd, and shows the tree and every fault.
//
//	parse [nodes=HOSTLIST]: the file in the input; nodes are those that exist, without it the file alone says
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/topology", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var known []string
			if d.HasArg("nodes") {
				for _, a := range d.CmdArgs {
					if a.Key == "nodes" {
						names, err := hostlist.Expand(strings.Join(a.Vals, ","))
						if err != nil {
							d.Fatalf(t, "%v", err)
						}
						known = names
					}
				}
			}
			tr, faults := Parse(strings.ReplaceAll(d.Input, "\\t", "\t"), known)
			var b strings.Builder
			for _, f := range faults {
				fmt.Fprintln(&b, f)
			}
			if tr == nil {
				return b.String() + "no tree\n"
			}
			sound(t, tr)
			return b.String() + tr.Draw(0, nil)
		})
	})
}

// sound checks what the numbers of a tree promise.
func sound(t *testing.T, tr *Tree) {
	t.Helper()
	if len(tr.Leaf) != len(tr.Nodes) || len(tr.Domain) != len(tr.Nodes) {
		t.Fatalf("%d nodes, %d leaves of nodes, %d domains", len(tr.Nodes), len(tr.Leaf), len(tr.Domain))
	}
	for i, n := range tr.Nodes {
		if at, ok := tr.Node(n); !ok || at != int32(i) {
			t.Fatalf("node %d %s is found at %d", i, n, at)
		}
		leaf := tr.Switches[tr.Leaf[i]]
		if leaf.Height != 0 || int32(i) < leaf.Lo || int32(i) >= leaf.Hi {
			t.Fatalf("node %d under %+v", i, leaf)
		}
	}
	h, seen := -1, int32(0)
	for id, s := range tr.Switches {
		if s.Height < h {
			t.Fatalf("switch %d is lower than the one before", id)
		}
		h = s.Height
		if lo, hi := tr.Level(s.Height); int32(id) < lo || int32(id) >= hi {
			t.Fatalf("switch %d of height %d is not in its level %d to %d", id, s.Height, lo, hi)
		}
		if s.Height == 0 {
			if s.LeafLo != int32(id) || s.LeafHi != int32(id)+1 || s.Lo != seen {
				t.Fatalf("leaf %d is %+v", id, s)
			}
			seen = s.Hi
			continue
		}
		highest, at, leaf := 0, s.Lo, s.LeafLo
		for _, c := range s.Children {
			x := tr.Switches[c]
			if x.Parent != int32(id) || x.Lo != at || x.LeafLo != leaf {
				t.Fatalf("child %d of %d: %+v", c, id, x)
			}
			highest, at, leaf = max(highest, x.Height), x.Hi, x.LeafHi
		}
		if at != s.Hi || leaf != s.LeafHi || highest+1 != s.Height {
			t.Fatalf("switch %d: %+v does not end where its children do", id, s)
		}
	}
	if seen != int32(len(tr.Nodes)) {
		t.Fatalf("leaves end at %d of %d nodes", seen, len(tr.Nodes))
	}
	for a := range tr.Switches {
		for _, b := range []int32{0, int32(len(tr.Switches) - 1)} {
			if c := tr.Common(int32(a), b); c != None && (tr.Switches[c].Lo > tr.Switches[a].Lo || tr.Switches[c].Hi < tr.Switches[b].Hi) {
				t.Fatalf("%d is common to %d and %d", c, a, b)
			}
		}
	}
}

func equal(a, b *Tree) bool {
	strip := func(t *Tree) []Switch {
		s := slices.Clone(t.Switches)
		for i := range s {
			s[i].AggregateOfBlock = false
			s[i].Children = slices.Clip(s[i].Children)
			if len(s[i].Children) == 0 {
				s[i].Children = nil
			}
		}
		return s
	}
	return slices.Equal(a.Nodes, b.Nodes) && slices.Equal(a.Leaf, b.Leaf) && slices.Equal(a.Domain, b.Domain) && slices.Equal(a.Domains, b.Domains) && reflect.DeepEqual(strip(a), strip(b))
}

// FuzzParse reads anything: the tree keeps its promises, no node is lost or on two leaves, and what Format writes reads
// back the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"SwitchName=s0 Nodes=a[1-3]\nSwitchName=s1 Nodes=a[4-5] LinkSpeed=9\nSwitchName=top Switches=s[0-1]\n",
		"BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockName=b3 Nodes=n[9-12]\nBlockSizes=4,8\n",
		"SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=x,x,y Switches=a\n",
		"switchname=A nodes=\"n1,n2\" # comment\\\nSwitchName=B \\\n Nodes=n2,n3\nInclude other\nFoo=1 bar\nSwitchName=[1-2] Nodes=n9\nSwitchName= Nodes=q",
		"BlockName=b Nodes=n1,n2\nSwitchName=s Nodes=n2,n1,n3\nSwitchName=z Nodes=\n",
		"BlockSizes=0,3,5\nBlockName=b Switches=x\nSwitchName=s",
		"BloCkNAme=! Nodes=[0]\nBloCkNAme=0",
	} {
		f.Add(s, "")
		f.Add(s, "n[1-9]")
	}
	f.Fuzz(func(t *testing.T, text, nodes string) {
		var known []string
		if nodes != "" {
			names, err := hostlist.Expand(nodes)
			if err != nil || len(names) > 1000 || len(names) == 0 {
				return
			}
			known = names
		}
		tr, faults := Parse(text, known)
		for _, x := range faults {
			if x.Text == "" || x.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("fault %+v", x)
			}
		}
		if tr == nil {
			if len(faults) == 0 {
				t.Fatal("no tree and no fault")
			}
			return
		}
		sound(t, tr)
		for _, n := range known {
			if _, ok := tr.Node(n); !ok {
				t.Fatalf("node %s is lost", n)
			}
		}
		for _, sw := range tr.Switches {
			// A name that no hostlist can hold can be given to a switch, but not be named as a child of another.
			if names, err := hostlist.Expand(sw.Name); sw.Name != "" && (err != nil || len(names) != 1 || names[0] != sw.Name) {
				return
			}
		}
		again, _ := Parse(tr.Format(), tr.Nodes)
		if again == nil || !equal(tr, again) {
			t.Fatalf("%q came back as\n%+v, was\n%+v", tr.Format(), again, tr)
		}
		tr.Draw(2, nil)
	})
}

// BenchmarkParse reads a tree of 100,000 nodes in leaves of 20.
func BenchmarkParse(b *testing.B) {
	var s strings.Builder
	for l := range 5000 {
		fmt.Fprintf(&s, "SwitchName=leaf%04d Nodes=gpu[%06d-%06d]\n", l, l*20, l*20+19)
	}
	for a := range 250 {
		fmt.Fprintf(&s, "SwitchName=agg%03d Switches=leaf[%04d-%04d]\n", a, a*20, a*20+19)
	}
	s.WriteString("SwitchName=core Switches=agg[000-249]\n")
	for b.Loop() {
		if t, faults := Parse(s.String(), nil); len(t.Nodes) != 100_000 || len(faults) > 0 {
			b.Fatal(len(t.Nodes), faults)
		}
	}
}
