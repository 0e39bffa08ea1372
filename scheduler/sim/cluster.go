package sim

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/scheduler"
	"github.com/assay-gpu/assay/scheduler/topo"
)

// A Node is one node of a simulated fleet.
type Node struct {
	Name  string
	GPUs  int
	Model string
}

// Uniform is n nodes of so many GPUs each.
func Uniform(n, gpus int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{Name: fmt.Sprintf("gpu%05d", i+1), GPUs: gpus}
	}
	return nodes
}

// ReadNodes reads a node file of cluster-trace-gpu-v2023; nodes without GPUs are left out.
func ReadNodes(r io.Reader) ([]Node, error) {
	rows := csv.NewReader(r)
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("the header of the node file: %w", err)
	}
	c := columnsOf(header)
	if missing := c.lacks([]string{"sn", "gpu", "model"}); len(missing) > 0 {
		return nil, fmt.Errorf("a node file has the columns sn, gpu and model; this one has %s: missing %s", strings.Join(header, ","), strings.Join(missing, ","))
	}
	var nodes []Node
	t := &Trace{}
	err = each(rows, c, t, func(r *record) {
		n := Node{Name: strings.ReplaceAll(r.text("sn"), "-node-", ""), GPUs: int(r.number("gpu", 0, maxGPUs)), Model: r.text("model")}
		if n.Name == "" {
			r.bad("sn is empty")
		}
		if r.wrong == "" && n.GPUs > 0 {
			nodes = append(nodes, n)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the node file: %w", err)
	}
	if len(t.Faults) > 0 { // a fleet is whole or it is another fleet
		return nil, fmt.Errorf("read the node file: %s", t.Faults[0])
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("the node file has no node with a GPU")
	}
	return nodes, nil
}

// start is second 0 of every run.
var start = time.Unix(1_700_000_000, 0).UTC()

// at is a second of a run as a time.
func at(s int64) time.Time { return start.Add(time.Duration(s) * time.Second) }

// A cluster is the fleet of a run.
type cluster struct {
	fleet  *scheduler.Fleet
	shapes []*topo.Shape // by node
	models map[string]*scheduler.NodeSet
	gpus   int
	leaf   int
}

// newCluster puts leaf nodes under each leaf switch and sixteen leaves under each aggregation switch. Nodes of one model and
// size stay together, as they are bought.
func newCluster(nodes []Node, leaf int) (*cluster, error) {
	var b strings.Builder
	leaves := (len(nodes) + leaf - 1) / leaf
	for l := range leaves {
		fmt.Fprintf(&b, "SwitchName=leaf%d Nodes=", l)
		for i := l * leaf; i < min(len(nodes), (l+1)*leaf); i++ {
			if i > l*leaf {
				b.WriteByte(',')
			}
			b.WriteString(nodes[i].Name)
		}
		b.WriteByte('\n')
	}
	aggs := (leaves + 15) / 16
	for a := range aggs {
		fmt.Fprintf(&b, "SwitchName=agg%d Switches=leaf[%d-%d]\n", a, a*16, min(leaves, (a+1)*16)-1)
	}
	if aggs > 1 {
		fmt.Fprintf(&b, "SwitchName=core Switches=agg[0-%d]\n", aggs-1)
	}
	tree, faults := topo.Parse(b.String(), nil)
	if len(tree.Nodes) != len(nodes) { // that numbers are missing from the names is no fault here
		return nil, fmt.Errorf("the topology of the fleet: %v", faults)
	}
	c := &cluster{fleet: scheduler.NewFleet(tree, start), shapes: make([]*topo.Shape, len(nodes)), models: map[string]*scheduler.NodeSet{}, leaf: leaf}
	shapes := map[int]*topo.Shape{}
	byModel := map[string][]int32{}
	for _, n := range nodes {
		i, _ := tree.Node(n.Name)
		if shapes[n.GPUs] == nil {
			shapes[n.GPUs] = topo.NewShape("sim", n.GPUs, true)
		}
		c.shapes[i] = shapes[n.GPUs]
		if err := c.fleet.See(i, c.shapes[i], 0); err != nil {
			return nil, err
		}
		c.gpus += n.GPUs
		byModel[n.Model] = append(byModel[n.Model], i)
	}
	for m, is := range byModel {
		c.models[m] = c.fleet.View().Set(is...)
	}
	return c, nil
}

// certify gives a node a certificate that lasts.
func (c *cluster) certify(node int32, serial uint64, now, lasts int64) {
	c.fleet.Certify(node, scheduler.Certificate{Serial: serial, Level: checks.Soak, GPUs: c.shapes[node].All(), Issued: at(now), Expires: at(now + lasts)})
}
