package slurm

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// A Node is one node as slurmctld shows it.
type Node struct {
	Name        string
	State       string   // base state: IDLE ALLOCATED MIXED DOWN ERROR FUTURE UNKNOWN; empty when none was named
	Flags       []string // such as DRAIN, COMPLETING, NOT_RESPONDING
	Reason      string
	ReasonUser  string
	ReasonTime  time.Time // UTC, whole seconds
	BootTime    time.Time // slurmctld's idea: zero from a resume until the node registers again
	SlurmdStart time.Time
	GPUs        int // configured gres/gpu
	CPUAlloc    int // CPUs in jobs
	Partitions  []string
}

// Has reports whether the state carries the flag.
func (n Node) Has(flag string) bool { return slices.Contains(n.Flags, flag) }

// Drained reports whether Slurm keeps new jobs away on somebody's word: DRAIN or FAIL.
func (n Node) Drained() bool { return n.Has(FlagDrain) || n.Has(FlagFail) }

// Empty reports whether no job is on the node and none is ending there.
func (n Node) Empty() bool {
	return n.State != "ALLOCATED" && n.State != "MIXED" && n.CPUAlloc == 0 && !n.Has(FlagCompleting)
}

// Away reports whether Slurm says that the node is rebooting or powered down: its silence is then no fault.
func (n Node) Away() bool {
	return slices.ContainsFunc(n.Flags, func(f string) bool {
		switch f {
		case FlagRebootIssued, FlagPoweringDown, FlagPoweredDown, FlagPowerDown, FlagPoweringUp:
			return true
		}
		return false
	})
}

// Nodes reads all nodes of the cluster with one child.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	out, err := c.read(ctx, "nodes", c.cfg.Scontrol, "show", "node", "-o", "--all")
	if err != nil {
		return nil, err
	}
	return ParseNodes(out)
}

// some reads the named nodes again. A node that Slurm does not know is missing from the answer.
func (c *Client) some(ctx context.Context, names []string) (map[string]Node, error) {
	found := make(map[string]Node, len(names))
	for part := range slices.Chunk(names, maxBatch) {
		out, err := c.read(ctx, "nodes", c.cfg.Scontrol, "show", "node", "-o", "--all", hostlist.Compress(part))
		if err != nil && !strings.Contains(err.Error(), "not found") {
			return nil, err
		}
		nodes, err := ParseNodes(out)
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			found[n.Name] = n
		}
	}
	return found, nil
}

// one reads one node again.
func (c *Client) one(ctx context.Context, verb, name string) (Node, error) {
	found, err := c.some(ctx, []string{name})
	if err != nil {
		return Node{}, err
	}
	n, ok := found[name]
	if !ok {
		return Node{}, &RefusedError{Verb: verb, Target: name, Msg: "Slurm knows no such node", Advice: "compare with `sinfo -N`"}
	}
	return n, nil
}

// nodeKeys end a free text: the keys of a node line, 20.11 to 24.11, that can follow one.
var nodeKeys = set("Reason Comment Extra InstanceId InstanceType ResumeAfterTime RealMemory AllocMem FreeMem Sockets Boards State ThreadsPerCore TmpDisk " +
	"Weight Owner MCS_label Partitions BootTime SlurmdStartTime LastBusyTime CfgTRES AllocTRES CapWatts CurrentWatts AveWatts ExtSensorsJoules Reservation " +
	"ReservationName CpuSpecList CoreSpecCount MemSpecLimit Gres GresDrain GresUsed NextState Version OS NodeAddr NodeHostName Port BcastAddr")

// ParseNodes reads the output of `scontrol show node -o`.
func ParseNodes(out string) ([]Node, error) {
	var nodes []Node
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "Node ") && strings.HasSuffix(line, " not found") || line == "No nodes in the system" {
			continue
		}
		f := fields(line, nodeKeys)
		if f["NodeName"] == "" || f["State"] == "" {
			return nil, &FormatError{Verb: "nodes", Line: line, Msg: "no NodeName or no State"}
		}
		n := Node{Name: f["NodeName"], BootTime: parseTime(f["BootTime"]), SlurmdStart: parseTime(f["SlurmdStartTime"]), GPUs: ParseGPUs(f["Gres"])}
		n.State, n.Flags = ParseState(f["State"])
		n.Reason, n.ReasonUser, n.ReasonTime = parseReason(f["Reason"])
		n.CPUAlloc, _ = strconv.Atoi(f["CPUAlloc"]) // missing: 0, and the state word says the same
		if p := null(f["Partitions"]); p != "" {
			n.Partitions = strings.Split(p, ",")
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// reasonTail is the "[user@time]" behind a reason. The last one counts: people write brackets too.
var reasonTail = regexp.MustCompile(`^(.*?) ?\[([^\[\]@ ]+)@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown)\]$`)

func parseReason(s string) (reason, user string, at time.Time) {
	if m := reasonTail.FindStringSubmatch(s); m != nil {
		return m[1], m[2], parseTime(m[3])
	}
	return null(s), "", time.Time{}
}

// ParseGPUs counts the GPUs in a Gres value: "gpu:h100:8(S:0-1),nic:2" has 8, "gpu:2K" 2048, "gpu" 1, "(null)" none.
func ParseGPUs(gres string) int {
	total, depth, start := 0, 0, 0
	item := func(s string) {
		s, _, _ = strings.Cut(s, "(")
		parts := strings.Split(strings.TrimPrefix(s, "gres/"), ":")
		if parts[0] != "gpu" {
			return
		}
		if len(parts) == 1 {
			total++
			return
		}
		total += count(parts[len(parts)-1])
	}
	for i := range len(gres) {
		switch gres[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				item(gres[start:i])
				start = i + 1
			}
		}
	}
	item(gres[start:])
	return total
}

// count reads a gres count with Slurm's suffixes. A last part that is no number is a type: one GPU of it.
func count(s string) int {
	factor := 1
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			factor, s = 1<<10, s[:len(s)-1]
		case 'm', 'M':
			factor, s = 1<<20, s[:len(s)-1]
		}
	}
	n, err := strconv.ParseUint(s, 10, 20)
	if err != nil {
		return 1
	}
	return int(n) * factor
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
