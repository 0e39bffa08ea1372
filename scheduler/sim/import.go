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

	"github.com/assay-gpu/assay/scheduler/topo"
)

// alibaba reads a task file of cluster-trace-gpu-v2023: one task on one node. Tasks without GPUs are left out, and those
// still pending when it was recorded. The multigpu files have no times: they are an order to fill a fleet in.
func alibaba(rows *csv.Reader, c columns) (*Trace, error) {
	t := &Trace{FillOrder: !c.has("creation_time")}
	err := each(rows, c, t, func(r *record) {
		gpus, milli := r.number("num_gpu", 0, maxGPUs), r.number("gpu_milli", 0, 1000)
		j := Job{Nodes: 1, GPUs: int(gpus), Account: strings.ToLower(r.text("qos"))}
		if gpus == 1 && milli < 1000 {
			j.GPUs, j.Share = 0, int(milli+9)/10
		}
		if s := r.text("gpu_spec"); s != "" {
			j.Models = strings.Split(s, "|")
		}
		ran := true
		if !t.FillOrder {
			j.Submit = r.number("creation_time", 0, numberMost)
			scheduled, started := r.maybe("scheduled_time")
			deleted, ended := r.maybe("deletion_time")
			ran = started && ended
			if ran && deleted < scheduled {
				r.bad("deleted at %d, before it was scheduled at %d", deleted, scheduled)
			}
			j.Run = max(1, deleted-scheduled)
		}
		t.take(r, j, gpus == 0 || milli == 0, ran)
	})
	if err != nil {
		return nil, err
	}
	return t.finish()
}

// maxGPUs is the most GPUs of one node.
const maxGPUs = topo.MaxGPUs

// take takes in a job that could be read, has GPUs and ran.
func (t *Trace) take(r *record, j Job, none, ran bool) {
	switch {
	case r.wrong != "":
	case none:
		t.skip(noGPU)
	case !ran:
		t.skip(neverRan)
	default:
		t.Jobs = append(t.Jobs, j)
	}
}

// gang splits so many GPUs over so many nodes, or says why that cannot be.
func (j *Job) gang(nodes, gpus int64) string {
	if nodes < 1 || nodes > maxNodes || gpus < 1 || (gpus+nodes-1)/nodes > maxGPUs {
		return fmt.Sprintf("%d GPUs on %d nodes: a node has at most %d", gpus, nodes, maxGPUs)
	}
	j.Nodes, j.GPUs = int(nodes), int((gpus+nodes-1)/nodes)
	return ""
}

// maxNodes is the most nodes of a job.
const maxNodes = 1 << 20

// acme reads trace_seren.csv and trace_kalos.csv of InternLM/AcmeTrace.
func acme(rows *csv.Reader, c columns) (*Trace, error) { return timed(rows, c, "queue") }

// helios reads the cluster logs of HeliosData.
func helios(rows *csv.Reader, c columns) (*Trace, error) { return timed(rows, c, "vc") }

// timed reads what Acme and Helios have in common: nodes and GPUs in all, and times as people write them.
func timed(rows *csv.Reader, c columns, account string) (*Trace, error) {
	t := &Trace{}
	err := each(rows, c, t, func(r *record) {
		nodes, gpus := r.number("node_num", 0, maxNodes), r.number("gpu_num", 0, numberMost)
		j := Job{User: r.text("user"), Account: r.text(account)}
		submit, ok := r.stamp("submit_time")
		if !ok {
			r.bad("submit_time is empty")
		}
		start, ran := r.stamp("start_time")
		end, ended := r.stamp("end_time")
		if gpus > 0 {
			if why := j.gang(max(1, nodes), gpus); why != "" {
				r.bad("%s", why)
			}
		}
		j.Submit, j.Run = submit, max(1, end-start)
		t.take(r, j, gpus == 0, ran && ended && end >= start)
	})
	if err != nil {
		return nil, err
	}
	return t.finish()
}

// A phillyJob is one job of cluster_job_log.
type phillyJob struct {
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
	for at := 1; d.More(); at++ {
		var x phillyJob
		if err := d.Decode(&x); err != nil {
			return nil, fmt.Errorf("read a Philly log, job %d, byte %d: %w", at, d.InputOffset(), err)
		}
		j := Job{User: x.User, Account: x.VC}
		submit, ok := stamp(x.Submitted)
		if !ok {
			t.fault(0, fmt.Sprintf("job %d of the list: submitted_time %q is no time", at, x.Submitted))
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
		}
		if why := j.gang(int64(len(x.Attempts[0].Detail)), int64(gpus)); why != "" {
			t.fault(0, fmt.Sprintf("job %d of the list: %s", at, why))
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
	for at := 1; lines.Scan(); at++ {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], ";") {
			continue
		}
		j, what, ran := swfJob(f)
		switch {
		case what != "":
			t.fault(at, what)
		case !ran:
			t.skip(neverRan)
		default:
			t.Jobs = append(t.Jobs, j)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read an SWF log: %w", err)
	}
	return t.finish()
}

// swfJob reads one line; what is wrong with it, and whether the job ran.
func swfJob(f []string) (j Job, what string, ran bool) {
	if len(f) != swfColumns {
		return j, fmt.Sprintf("%d numbers: a line has %d", len(f), swfColumns), false
	}
	var n [swfColumns]int64
	for i := range n {
		x, err := strconv.ParseFloat(f[i], 64)
		if err != nil || !(x >= -numberMost && x <= numberMost) {
			return j, fmt.Sprintf("column %d, %q, is no number", i+1, f[i]), false
		}
		n[i] = int64(x)
	}
	// By the standard's order: 2 submit, 4 run, 5 processors given, 8 asked, 9 time asked, 12 user, 13 group.
	procs := n[7]
	if procs < 1 {
		procs = n[4]
	}
	j = Job{Submit: n[1], Run: n[3], Limit: max(0, n[8]), User: "u" + f[11], Account: "g" + f[12]}
	if procs < 1 {
		return j, "no processors, neither given (column 5) nor asked (column 8)", false
	}
	return j, j.gang((procs+7)/8, procs), j.Run >= 1
}

// ownHeader is this package's own form.
const ownHeader = "user,account,submit,run,limit,nodes,gpus,share,models"

func own(rows *csv.Reader, c columns) (*Trace, error) {
	t := &Trace{}
	err := each(rows, c, t, func(r *record) {
		j := Job{User: r.text("user"), Account: r.text("account"), Submit: r.number("submit", 0, numberMost), Run: r.number("run", 1, numberMost),
			Nodes: int(r.number("nodes", 1, maxNodes)), GPUs: int(r.number("gpus", 0, maxGPUs))}
		if j.Limit, _ = r.maybe("limit"); j.Limit < 0 {
			r.bad("limit is %d", j.Limit)
		}
		if r.text("share") != "" {
			j.Share = int(r.number("share", 0, 100))
		}
		if (j.GPUs == 0) == (j.Share == 0) {
			r.bad("%d GPUs and a share of %d: want one of the two", j.GPUs, j.Share)
		}
		if s := r.text("models"); s != "" {
			j.Models = strings.Split(s, "|")
		}
		t.take(r, j, false, true)
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
