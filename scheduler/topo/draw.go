package topo

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// Draw is a picture of t: a line for each switch, its nodes counted, those of a leaf named. note says what there is to say
// of the nodes lo ≤ i < hi, as their health; nil: nothing. Below depth switches are left out, 0 shows all.
func (t *Tree) Draw(depth int, note func(lo, hi int32) string) string {
	p := &picture{t: t, depth: depth, note: note}
	tops := t.tops()
	for i := 0; i < len(tops); i++ {
		s := &t.Switches[tops[i]]
		if !s.Outside {
			p.sw(tops[i], "", "", 1)
			continue
		}
		// Nodes outside the tree come together, at the end.
		p.line("outside the tree", s.Lo, int32(len(t.Nodes)), true)
		break
	}
	return p.String()
}

type picture struct {
	t     *Tree
	depth int
	note  func(lo, hi int32) string
	lines [][2]string
}

func (p *picture) sw(id int32, lead, below string, level int) {
	s := &p.t.Switches[id]
	shown := p.depth == 0 || level < p.depth
	p.line(lead+s.Name, s.Lo, s.Hi, len(s.Children) == 0)
	if !shown {
		return
	}
	for i, c := range s.Children {
		if i == len(s.Children)-1 {
			p.sw(c, below+"└─ ", below+"   ", level+1)
		} else {
			p.sw(c, below+"├─ ", below+"│  ", level+1)
		}
	}
}

func (p *picture) line(name string, lo, hi int32, leaf bool) {
	text := fmt.Sprintf("%d nodes", hi-lo)
	if hi-lo == 1 {
		text = "1 node"
	}
	if leaf && hi > lo {
		text += "  " + hostlist.Compress(p.t.Nodes[lo:hi])
		if d := p.domains(lo, hi); d != "" {
			text += "  NVLink " + d
		}
	}
	if p.note != nil && hi > lo {
		if n := p.note(lo, hi); n != "" {
			text += "  " + n
		}
	}
	p.lines = append(p.lines, [2]string{name, text})
}

// domains names the NVLink domains of a leaf, unless the one there is has the leaf's name.
func (p *picture) domains(lo, hi int32) string {
	var names []string
	last := None
	for i := lo; i < hi; i++ {
		if d := p.t.Domain[i]; d != None && d != last {
			names = append(names, p.t.Domains[d])
			last = d
		}
	}
	if len(names) == 1 && names[0] == p.t.Switches[p.t.Leaf[lo]].Name {
		return ""
	}
	return hostlist.Compress(names)
}

func (p *picture) String() string {
	wide := 0
	for _, l := range p.lines {
		wide = max(wide, len([]rune(l[0])))
	}
	var b strings.Builder
	for _, l := range p.lines {
		fmt.Fprintf(&b, "%s%s  %s\n", l[0], strings.Repeat(" ", wide-len([]rune(l[0]))), l[1])
	}
	return b.String()
}
