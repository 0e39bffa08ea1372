package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Job is one job of a trace. Times are seconds from the trace's start.
type Job struct {
	ID      int64
	User    string
	Account string
	Submit  int64
	Run     int64 // how long it really runs
	Limit   int64 // what its user asked for; 0: not known
	Nodes   int
	GPUs    int      // on each node
	Share   int      // percent of one GPU, instead of GPUs; 0: whole ones
	Models  []string // GPU models that will do; empty: any
}

// A Trace is jobs in the order of their coming, and what was left out.
type Trace struct {
	Jobs    []Job
	Skipped map[string]int // by reason
	Faults  []Fault        // the first lines that could not be read
	// FillOrder says that the trace has an order and no times: jobs are placed one after the other until nothing fits.
	FillOrder bool
}

// A Fault is what is wrong with one line of a file.
type Fault struct {
	Line int    `json:"line,omitempty"` // from 1; 0: What says where
	What string `json:"what"`
}

func (f Fault) String() string {
	if f.Line == 0 {
		return f.What
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.What)
}

// faultsKept is how many lines are told one by one; all are counted.
const faultsKept = 5

// fault leaves out a line that cannot be read.
func (t *Trace) fault(line int, what string) {
	t.skip(unreadable)
	if len(t.Faults) < faultsKept {
		t.Faults = append(t.Faults, Fault{line, what})
	}
}

func (t *Trace) skip(why string) {
	if t.Skipped == nil {
		t.Skipped = map[string]int{}
	}
	t.Skipped[why]++
}

// finish sorts the jobs, numbers them and moves the first to second 0.
func (t *Trace) finish() (*Trace, error) {
	if len(t.Jobs) == 0 {
		why := ""
		for _, f := range t.Faults {
			why += "; " + f.String()
		}
		if n := t.Skipped[unreadable] - len(t.Faults); n > 0 {
			why += fmt.Sprintf("; and %d more", n)
		}
		for _, reason := range sorted(t.Skipped) {
			if reason != unreadable {
				why += fmt.Sprintf("; %d left out: %s", t.Skipped[reason], reason)
			}
		}
		return nil, fmt.Errorf("the trace has no job that could run%s", why)
	}
	slices.SortStableFunc(t.Jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	first := t.Jobs[0].Submit
	for i := range t.Jobs {
		t.Jobs[i].ID = int64(i + 1)
		t.Jobs[i].Submit -= first
	}
	return t, nil
}

// Reasons for which jobs are left out.
const (
	noGPU      = "asks no GPU"
	neverRan   = "never ran, so nobody knows for how long it would have"
	unreadable = "a line that cannot be read"
)

// Read reads a trace of any known kind, told apart by its first line: the Alibaba 2023 task files, Acme's Seren and Kalos,
// Helios, Philly, SWF, or this package's own form.
func Read(r io.Reader) (*Trace, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	head, err := b.Peek(1 << 12)
	if len(head) == 0 {
		return nil, fmt.Errorf("an empty trace: %w", err)
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	first := strings.TrimSpace(string(line))
	switch {
	case strings.HasPrefix(first, "["):
		return philly(b)
	case strings.HasPrefix(first, ";") || len(strings.Fields(first)) == swfColumns:
		return swf(b)
	}
	rows := csv.NewReader(b)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("the header of the trace: %w", err)
	}
	c := columnsOf(header)
	for _, k := range tables {
		if !c.has(k.marks...) {
			continue
		}
		if missing := c.lacks(k.needs); len(missing) > 0 {
			return nil, fmt.Errorf("line 1: %s needs the columns %s; missing: %s", k.name, strings.Join(k.needs, ","), strings.Join(missing, ","))
		}
		return k.read(rows, c)
	}
	return nil, fmt.Errorf("no trace that is known has the columns %s", strings.Join(header, ","))
}

// tables are the traces that come as a table: what tells each kind, in this order, and what it must have.
var tables = []struct {
	name         string
	marks, needs []string
	read         func(*csv.Reader, columns) (*Trace, error)
}{
	{"a task file of Alibaba's with times", []string{"gpu_milli", "creation_time"}, []string{"num_gpu", "gpu_milli", "creation_time", "scheduled_time", "deletion_time"}, alibaba},
	{"a task file of Alibaba's", []string{"gpu_milli"}, []string{"num_gpu", "gpu_milli"}, alibaba},
	{"a log of Helios", []string{"gpu_num", "vc"}, []string{"node_num", "gpu_num", "submit_time", "start_time", "end_time", "user", "vc"}, helios},
	{"a log of Acme's", []string{"gpu_num"}, []string{"node_num", "gpu_num", "submit_time", "start_time", "end_time", "user", "queue"}, acme},
	{"a trace of assay sim generate", []string{"submit", "run"}, []string{"submit", "run", "nodes", "gpus"}, own},
}
