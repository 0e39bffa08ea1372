package coordinator

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// shapes are the shapes of nodes seen so far, by model and number of GPUs.
var shapes sync.Map

// shapeOf is how the GPUs of a node hang together, as far as its inventory says: boards that are sold as part of a baseboard
// are joined by NVLink, others are not.
func shapeOf(n lifecycle.Node) *topo.Shape {
	count := min(len(n.Inventory.GPUs), topo.MaxGPUs)
	name := ""
	if count > 0 {
		name = n.Inventory.GPUs[0].Name
	}
	key := fmt.Sprintf("%d %s", count, name)
	if s, ok := shapes.Load(key); ok {
		return s.(*topo.Shape)
	}
	s, _ := shapes.LoadOrStore(key, topo.NewShape(name, count, nvlinked(name)))
	return s.(*topo.Shape)
}

// nvlinked reports whether a product comes with NVLink between all GPUs of a node. Source: NVIDIA's product names, in which
// SXM modules and Grace superchips say so; HBM3 without PCIe is an SXM5 module.
func nvlinked(name string) bool {
	for _, w := range []string{"SXM", "HBM3", "GB200", "GB300", "B200", "B300", "H200", "GH200"} {
		if strings.Contains(name, w) && !strings.Contains(name, "PCIe") && !strings.Contains(name, "NVL") {
			return true
		}
	}
	return false
}

// feed tells a fleet of a node as it is now.
func feed(f *scheduler.Fleet, i int32, n lifecycle.Node, now time.Time) error {
	if len(n.Inventory.GPUs) == 0 && f.View().Node(i).Shape == nil {
		return nil // nobody has told of it
	}
	if s := shapeOf(n); len(n.Inventory.GPUs) > 0 && s != f.View().Node(i).Shape {
		if err := f.See(i, s, 0); err != nil {
			return err
		}
	}
	was := f.View().Node(i)
	var is scheduler.Certificate
	if c := n.Certificate; c != nil && !n.Suspended {
		is = scheduler.Certificate{Serial: c.Serial, Level: c.Level, GPUs: covered(n), Issued: c.IssuedAt, Expires: c.Expires}
	}
	// A serial is given once: what has it and is of the same level, for the same GPUs, is the same certificate.
	switch {
	case is.Serial == was.Certificate.Serial && is.Level == was.Certificate.Level && is.GPUs == was.Certificate.GPUs:
	case is.Serial > 0:
		f.Certify(i, is)
	default:
		f.Revoke(i)
	}
	if why := barred(n, now); why != "" {
		f.Bar(i, scheduler.Bar{Why: why, Since: n.Since, By: lifecycle.Owner(n)})
	} else if was.Bar != nil {
		f.Unbar(i)
	}
	return nil
}

// covered is the mask of GPUs that a node's certificate speaks for.
func covered(n lifecycle.Node) uint32 {
	uuids := map[string]bool{}
	for _, u := range n.Certificate.GPUs {
		uuids[u] = true
	}
	var mask uint32
	for _, g := range n.Inventory.GPUs {
		if uuids[g.UUID] && g.Index >= 0 && g.Index < topo.MaxGPUs {
			mask |= 1 << g.Index
		}
	}
	return mask
}

// barred is why a node takes no new work whatever its certificate says; "" when it does.
func barred(n lifecycle.Node, now time.Time) string {
	switch {
	case n.State != lifecycle.Certified:
		why := string(n.State)
		if n.Case != nil {
			why += " " + n.Case.ID
		}
		return why
	case n.Lost:
		return "lost: its agent does not answer"
	case n.Marked(lifecycle.MarkOverridden, now):
		return "overridden by a person"
	case n.Case != nil:
		return "case " + n.Case.ID
	}
	for _, h := range n.Holds {
		if h.Expires.IsZero() || now.Before(h.Expires) {
			return "held by " + h.Owner + ": " + h.Reason
		}
	}
	return ""
}

// treeOf is the topology of the fleet: the site's file where there is one, else each node under the leaf that enrolment or
// Slurm named, all leaves under one switch. Nodes that neither knows stand outside the tree. Without any node it has one that
// nobody tells of: a queue needs a fleet.
func treeOf(file string, nodes map[string]lifecycle.Node) *topo.Tree {
	names := sortedKeys(nodes)
	if file == "" {
		leaves := map[string][]string{}
		for _, name := range names {
			leaf := nodes[name].Leaf
			if leaf == "" {
				leaf = "unplaced"
			}
			leaves[leaf] = append(leaves[leaf], name)
		}
		var b strings.Builder
		for _, leaf := range sortedKeys(leaves) {
			fmt.Fprintf(&b, "SwitchName=%s Nodes=%s\n", leaf, hostlist.Compress(leaves[leaf]))
		}
		if len(leaves) > 1 {
			fmt.Fprintf(&b, "SwitchName=above-all-leaves Switches=%s\n", strings.Join(sortedKeys(leaves), ","))
		}
		file = b.String()
	}
	tree, _ := topo.Parse(file, names) // faults of the site's file are told when assayd reads it
	if tree == nil {
		return topo.Flat([]string{"none"})
	}
	return tree
}
