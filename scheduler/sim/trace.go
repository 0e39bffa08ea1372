package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
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
	// FillOrder says that the trace has an order and no times: jobs are placed one after the other until nothing fits.
	FillOrder bool
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
		return nil, fmt.Errorf("no job that could run; left out: %v", t.Skipped)
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
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("the header of the trace: %w", err)
	}
	c := columns{}
	for i, name := range header {
		c[strings.TrimSpace(name)] = i
	}
	switch {
	case c.has("num_gpu", "gpu_milli"):
		return alibaba(rows, c)
	case c.has("job_id", "node_num", "gpu_num", "submit_time", "start_time", "end_time", "vc"):
		return helios(rows, c)
	case c.has("job_id", "node_num", "gpu_num", "submit_time", "start_time", "end_time"):
		return acme(rows, c)
	case c.has("submit", "run", "nodes", "gpus"):
		return own(rows, c)
	}
	return nil, fmt.Errorf("no trace that is known has the columns %s", strings.Join(header, ","))
}

// columns are a header's names and places.
type columns map[string]int

func (c columns) has(names ...string) bool {
	for _, n := range names {
		if _, ok := c[n]; !ok {
			return false
		}
	}
	return true
}

func (c columns) text(row []string, name string) string {
	if i, ok := c[name]; ok && i < len(row) {
		return strings.TrimSpace(row[i])
	}
	return ""
}

// number is a column as a whole number; false when it is empty, junk or too large to be one.
func (c columns) number(row []string, name string) (int64, bool) {
	f, err := strconv.ParseFloat(c.text(row, name), 64)
	if err != nil || f < -1e15 || f > 1e15 {
		return 0, false
	}
	return int64(f), true
}

// stamp is a column as a time, in Unix seconds.
func (c columns) stamp(row []string, name string) (int64, bool) {
	s := c.text(row, name)
	for _, layout := range []string{"2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Unix(), true
		}
	}
	return 0, false
}

// each calls f for every row that has as many columns as the header; others are counted as unreadable.
func each(rows *csv.Reader, t *Trace, f func(row []string) error) error {
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if _, bad := err.(*csv.ParseError); bad {
				t.skip(unreadable)
				continue
			}
			return fmt.Errorf("read the trace: %w", err)
		}
		if err := f(row); err != nil {
			return err
		}
	}
}
