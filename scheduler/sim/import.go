package sim

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// alibaba reads a task file of cluster-trace-gpu-v2023: one task on one node. Tasks without GPUs are left out, and those
// still pending when it was recorded. The multigpu files have no times: they are an order to fill a fleet in.
func alibaba(rows *csv.Reader, c columns) (*Trace, error) {
	t := &Trace{FillOrder: !c.has("creation_time")}
	err := each(rows, t, func(row []string) error {
		gpus, ok := c.number(row, "num_gpu")
		milli, ok2 := c.number(row, "gpu_milli")
		if !ok || !ok2 || gpus < 0 || gpus > 32 || milli < 0 {
			t.skip(unreadable)
			return nil
		}
		if gpus == 0 || milli == 0 {
			t.skip(noGPU)
			return nil
		}
		j := Job{Nodes: 1, GPUs: int(gpus), Account: strings.ToLower(c.text(row, "qos"))}
		if gpus == 1 && milli < 1000 {
			j.GPUs, j.Share = 0, int(milli+9)/10
		}
		if s := c.text(row, "gpu_spec"); s != "" {
			j.Models = strings.Split(s, "|")
		}
		if !t.FillOrder {
			created, ok := c.number(row, "creation_time")
			scheduled, ran := c.number(row, "scheduled_time")
			deleted, ended := c.number(row, "deletion_time")
			if !ok || !ran || !ended {
				t.skip(neverRan)
				return nil
			}
			j.Submit, j.Run = created, max(1, deleted-scheduled)
		}
		t.Jobs = append(t.Jobs, j)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t.finish()
}

// gang splits so many GPUs over so many nodes; false when that cannot be.
func (j *Job) gang(nodes, gpus int64) bool {
	if nodes < 1 || gpus < 1 || nodes > 1<<20 || gpus > 1<<23 || (gpus+nodes-1)/nodes > 32 {
		return false
	}
	j.Nodes, j.GPUs = int(nodes), int((gpus+nodes-1)/nodes)
	return true
}

// acme reads trace_seren.csv and trace_kalos.csv of InternLM/AcmeTrace.
func acme(rows *csv.Reader, c columns) (*Trace, error) { return timed(rows, c, "queue") }

// helios reads the cluster logs of HeliosData.
func helios(rows *csv.Reader, c columns) (*Trace, error) { return timed(rows, c, "vc") }

// timed reads what Acme and Helios have in common: nodes and GPUs in all, and times as people write them.
func timed(rows *csv.Reader, c columns, account string) (*Trace, error) {
	t := &Trace{}
	err := each(rows, t, func(row []string) error {
		nodes, ok := c.number(row, "node_num")
		gpus, ok2 := c.number(row, "gpu_num")
		if !ok || !ok2 {
			t.skip(unreadable)
			return nil
		}
		if gpus == 0 {
			t.skip(noGPU)
			return nil
		}
		j := Job{User: c.text(row, "user"), Account: c.text(row, account)}
		submit, ok := c.stamp(row, "submit_time")
		start, ran := c.stamp(row, "start_time")
		end, ended := c.stamp(row, "end_time")
		switch {
		case !ok || !j.gang(max(1, nodes), gpus):
			t.skip(unreadable)
			return nil
		case !ran || !ended || end < start:
			t.skip(neverRan)
			return nil
		}
		j.Submit, j.Run = submit, max(1, end-start)
		t.Jobs = append(t.Jobs, j)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t.finish()
}

// philly reads cluster_job_log of msr-fiddle/philly-traces: a JSON list. A job's nodes are those of its first attempt, its
// run is the time of all attempts.
func philly(r io.Reader) (*Trace, error) {
	d := json.NewDecoder(r)
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("read a Philly log: %w", err)
	}
	stamp := func(s string) (int64, bool) {
		x, err := time.Parse("2006-01-02 15:04:05", s)
		return x.Unix(), err == nil
	}
	t := &Trace{}
	for d.More() {
		var x struct {
			VC        string `json:"vc"`
			User      string `json:"user"`
			Submitted string `json:"submitted_time"`
			Attempts  []struct {
				Start  string `json:"start_time"`
				End    string `json:"end_time"`
				Detail []struct {
					GPUs []string `json:"gpus"`
				} `json:"detail"`
			} `json:"attempts"`
		}
		if err := d.Decode(&x); err != nil {
			return nil, fmt.Errorf("read a Philly log, job %d: %w", len(t.Jobs)+1, err)
		}
		j := Job{User: x.User, Account: x.VC}
		submit, ok := stamp(x.Submitted)
		if !ok {
			t.skip(unreadable)
			continue
		}
		gpus := 0
		for i, a := range x.Attempts {
			start, ran := stamp(a.Start)
			end, ended := stamp(a.End)
			if ran && ended && end > start {
				j.Run += end - start
			}
			for _, n := range a.Detail {
				if i == 0 {
					gpus += len(n.GPUs)
				}
			}
		}
		switch {
		case j.Run == 0:
			t.skip(neverRan)
			continue
		case gpus == 0:
			t.skip(noGPU)
			continue
		case !j.gang(int64(len(x.Attempts[0].Detail)), int64(gpus)):
			t.skip(unreadable)
			continue
		}
		j.Submit = submit
		t.Jobs = append(t.Jobs, j)
	}
	return t.finish()
}

// swfColumns is how many numbers a line of the Standard Workload Format has.
const swfColumns = 18

// swf reads the Standard Workload Format (Feitelson, version 2.2). It knows processors only: here each is a GPU, eight to a
// node.
func swf(r io.Reader) (*Trace, error) {
	t := &Trace{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], ";") {
			continue
		}
		if len(f) != swfColumns {
			t.skip(unreadable)
			continue
		}
		var n [swfColumns]int64
		bad := false
		for i := range n {
			x, err := strconv.ParseFloat(f[i], 64)
			bad = bad || err != nil || x < -1e15 || x > 1e15
			n[i] = int64(x)
		}
		// By the standard's order: 2 submit, 4 run, 5 processors given, 8 asked, 9 time asked, 12 user, 13 group.
		procs := n[7]
		if procs < 1 {
			procs = n[4]
		}
		j := Job{Submit: n[1], Run: n[3], Limit: max(0, n[8]), User: "u" + f[11], Account: "g" + f[12]}
		switch {
		case bad || procs < 1:
			t.skip(unreadable)
			continue
		case j.Run < 1:
			t.skip(neverRan)
			continue
		case !j.gang((procs+7)/8, procs):
			t.skip(unreadable)
			continue
		}
		t.Jobs = append(t.Jobs, j)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read an SWF log: %w", err)
	}
	return t.finish()
}

// ownHeader is this package's own form.
const ownHeader = "user,account,submit,run,limit,nodes,gpus,share,models"

func own(rows *csv.Reader, c columns) (*Trace, error) {
	t := &Trace{}
	err := each(rows, t, func(row []string) error {
		j := Job{User: c.text(row, "user"), Account: c.text(row, "account")}
		var n [6]int64
		for i, name := range []string{"submit", "run", "limit", "nodes", "gpus", "share"} {
			n[i], _ = c.number(row, name)
		}
		j.Submit, j.Run, j.Limit, j.Nodes, j.GPUs, j.Share = n[0], n[1], n[2], int(n[3]), int(n[4]), int(n[5])
		if s := c.text(row, "models"); s != "" {
			j.Models = strings.Split(s, "|")
		}
		if j.Submit < 0 || j.Run < 1 || j.Nodes < 1 || j.Nodes > 1<<20 || j.GPUs < 0 || j.GPUs > 32 || j.Share < 0 || j.Share > 100 || (j.GPUs == 0) == (j.Share == 0) {
			t.skip(unreadable)
			return nil
		}
		t.Jobs = append(t.Jobs, j)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t.finish()
}

// Write writes a trace in this package's own form.
func (t *Trace) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, ownHeader)
	for _, j := range t.Jobs {
		fmt.Fprintf(b, "%s,%s,%d,%d,%d,%d,%d,%d,%s\n", j.User, j.Account, j.Submit, j.Run, j.Limit, j.Nodes, j.GPUs, j.Share, strings.Join(j.Models, "|"))
	}
	return b.Flush()
}
