package sim

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks/hostlist"
	"github.com/assay-gpu/assay/checks/strictyaml"
)

// A Scenario describes a fleet of simulated nodes and what happens to it over time. Its file:
//
//	model: H100
//	count: 8
//	driver: 550.54.15
//	nodes: gpu[001-008]
//	overrides:
//	  - nodes: gpu002
//	    gpus: {5: {remap_failed: true}}
//	  - nodes: gpu[003-004]
//	    gpus: {0: {hang: nvmlDeviceGetRemappedRows, heals_after_reboots: 1}}
//	events:
//	  - {after: 20s, nodes: gpu001, fall_off_bus: 3}
//	  - {after: 30s, nodes: gpu006, host: {ports: {mlx5_3: {down: true}}}}
//	  - {after: 40s, nodes: gpu005, set: {gpu: 2, recovery_action: 1}, xid: {gpu: 2, code: 95}}
type Scenario struct {
	Model      string            `yaml:"model"`  // see Models
	Count      int               `yaml:"count"`  // GPUs a node
	Driver     string            `yaml:"driver"` // kernel driver version
	Nodes      string            `yaml:"nodes"`  // a hostlist; empty: any node
	NodeChange `yaml:",inline"`  // node_serial is refused here: each node has its own
	GPUs       map[int]GPUChange `yaml:"gpus"` // by index, on every node
	Host       HostChange        `yaml:"host"` // of every node
	Overrides  []Override        `yaml:"overrides"`
	Events     []Event           `yaml:"events"`

	names map[string]bool // Nodes, expanded
}

// An Override is what is different on some nodes. Later ones win.
type Override struct {
	Nodes      string `yaml:"nodes"`
	Model      string `yaml:"model"`
	Count      int    `yaml:"count"`
	NodeChange `yaml:",inline"`
	GPUs       map[int]GPUChange `yaml:"gpus"`
	Host       HostChange        `yaml:"host"`

	names map[string]bool
}

// An Event is what happens once, some time after Run was started. It names its nodes and does one or more things, in the
// order of the fields below.
type Event struct {
	After      time.Duration `yaml:"after" json:"after"`
	Nodes      string        `yaml:"nodes" json:"nodes,omitempty"` // a hostlist; empty: every node
	Node       string        `yaml:"node" json:"-"`                // the same, for one
	Set        *EventSet     `yaml:"set" json:"set,omitempty"`
	Host       *HostChange   `yaml:"host" json:"host,omitempty"`
	FallOffBus *int          `yaml:"fall_off_bus" json:"fall_off_bus,omitempty"` // the GPU is lost, with the driver's lines
	XID        *EventXID     `yaml:"xid" json:"xid,omitempty"`
	Kmsg       string        `yaml:"kmsg" json:"kmsg,omitempty"` // a kernel log line, without the prefix
	Reset      *int          `yaml:"reset" json:"reset,omitempty"`
	Reboot     bool          `yaml:"reboot" json:"reboot,omitempty"`

	names map[string]bool
}

// An EventSet changes one GPU.
type EventSet struct {
	GPU       int `yaml:"gpu" json:"gpu"`
	GPUChange `yaml:",inline"`
}

// An EventXID writes the driver's line for an XID.
type EventXID struct {
	GPU  int    `yaml:"gpu" json:"gpu"`
	Code int    `yaml:"code" json:"code"`
	Text string `yaml:"text" json:"text,omitempty"` // empty: the driver's usual text for the code
}

// LoadScenario reads a scenario file. The error is a *strictyaml.Error that names every fault with its line.
func LoadScenario(file string) (Scenario, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return Scenario{}, fmt.Errorf("scenario: %w", err)
	}
	return ParseScenario(file, b)
}

// ParseScenario is LoadScenario for a file already read.
func ParseScenario(file string, data []byte) (Scenario, error) {
	sc := Scenario{Model: "H100", Count: 8, Driver: "550.54.15"}
	lines, err := strictyaml.DecodeWithLines(file, data, &sc)
	var e strictyaml.Error
	switch err := err.(type) {
	case nil:
		e.File = file
	case *strictyaml.Error:
		e = *err
	default:
		return Scenario{}, err
	}
	v := validator{lines: lines, err: &e}
	v.scenario(&sc)
	if err := e.Err(); err != nil {
		return Scenario{}, err
	}
	return sc, nil
}

// validator judges what the YAML decoder cannot.
type validator struct {
	lines strictyaml.Lines
	err   *strictyaml.Error
}

func (v validator) add(path, format string, args ...any) {
	line, column := v.lines.At(path)
	v.err.Add(line, column, path, format, args...)
}

func (v validator) scenario(sc *Scenario) {
	v.model("model", sc.Model)
	v.count("count", sc.Count)
	sc.names = v.nodes("nodes", sc.Nodes, true)
	v.changes("", sc.NodeChange)
	if sc.NodeSerial != nil {
		v.add("node_serial", "each node has its own; set it in overrides")
	}
	if sc.NodeChange.Driver == nil && (sc.Driver == "" || len(sc.Driver) > 70) {
		v.add("driver", "%q: want a version, as 550.54.15", sc.Driver)
	}
	v.gpus("gpus", sc.GPUs, sc.Count)
	v.host("host", sc.Host)
	most := sc.Count
	for i := range sc.Overrides {
		o, at := &sc.Overrides[i], fmt.Sprintf("overrides[%d]", i)
		if o.Nodes == "" {
			v.add(at, "nodes: missing; an override names its nodes")
		}
		o.names = v.within(at+".nodes", v.nodes(at+".nodes", o.Nodes, false), sc.names)
		count := sc.Count
		if o.Count != 0 {
			count = o.Count
		}
		most = max(most, count)
		if o.Model != "" {
			v.model(at+".model", o.Model)
		}
		if o.Count != 0 {
			v.count(at+".count", o.Count)
		}
		v.changes(at+".", o.NodeChange)
		v.gpus(at+".gpus", o.GPUs, count)
		v.host(at+".host", o.Host)
	}
	for i := range sc.Events {
		v.event(fmt.Sprintf("events[%d]", i), &sc.Events[i], sc.names, most)
	}
}

func (v validator) model(path, name string) {
	if _, ok := models[name]; !ok {
		v.add(path, "%q: want one of %s", name, strings.Join(Models(), ", "))
	}
}

func (v validator) count(path string, n int) {
	if n < 1 || n > maxGPUs {
		v.add(path, "%d: want 1 to %d GPUs", n, maxGPUs)
	}
}

func (v validator) nodes(path, list string, mayBeEmpty bool) map[string]bool {
	if list == "" && mayBeEmpty {
		return nil
	}
	names, err := hostlist.Expand(list)
	if err != nil {
		v.add(path, "%v", err)
		return nil
	}
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	return set
}

// within complains of names that the scenario does not have.
func (v validator) within(path string, names, all map[string]bool) map[string]bool {
	var strange []string
	for n := range names {
		if all != nil && !all[n] {
			strange = append(strange, n)
		}
	}
	if len(strange) > 0 {
		slices.Sort(strange)
		v.add(path, "%s: not among nodes", hostlist.Compress(strange))
	}
	return names
}

func (v validator) changes(prefix string, c NodeChange) {
	for _, f := range c.faults() {
		v.add(prefix+f.key, "%s", f.message)
	}
}

func (v validator) gpus(path string, gpus map[int]GPUChange, count int) {
	for _, i := range slices.Sorted(maps.Keys(gpus)) {
		v.gpu(fmt.Sprintf("%s.%d", path, i), i, count)
		for _, f := range gpus[i].faults() {
			v.add(fmt.Sprintf("%s.%d.%s", path, i, f.key), "%s", f.message)
		}
	}
}

func (v validator) gpu(path string, i, count int) {
	if i < 0 || i >= count {
		v.add(path, "no GPU %d: a node has %d", i, count)
	}
}

// host tries the change on a healthy host.
func (v validator) host(path string, c HostChange) {
	h := newHost()
	var e *ChangeError
	if err := h.change(c); errors.As(err, &e) {
		for _, f := range e.Faults {
			v.add(path, "%s", f)
		}
	}
}

func (v validator) event(at string, ev *Event, all map[string]bool, count int) {
	if ev.After < 0 {
		v.add(at+".after", "want 0s or more")
	}
	if ev.Node != "" {
		if ev.Nodes != "" {
			v.add(at+".node", "give node or nodes, not both")
		}
		ev.Nodes = ev.Node
	}
	ev.names = v.within(at+".nodes", v.nodes(at+".nodes", ev.Nodes, true), all)
	if ev.Set == nil && ev.Host == nil && ev.FallOffBus == nil && ev.XID == nil && ev.Kmsg == "" && ev.Reset == nil && !ev.Reboot {
		v.add(at, "does nothing; give set, host, fall_off_bus, xid, kmsg, reset or reboot")
	}
	if ev.Set != nil {
		v.gpu(at+".set.gpu", ev.Set.GPU, count)
		for _, f := range ev.Set.faults() {
			v.add(at+".set."+f.key, "%s", f.message)
		}
	}
	if ev.Host != nil {
		v.host(at+".host", *ev.Host)
	}
	if ev.FallOffBus != nil {
		v.gpu(at+".fall_off_bus", *ev.FallOffBus, count)
	}
	if ev.Reset != nil {
		v.gpu(at+".reset", *ev.Reset, count)
	}
	if ev.XID != nil {
		v.gpu(at+".xid.gpu", ev.XID.GPU, count)
		if ev.XID.Code < 1 || ev.XID.Code > 9999 {
			v.add(at+".xid.code", "%d: want an XID", ev.XID.Code)
		}
	}
}
