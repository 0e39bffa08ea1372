package coordinator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/commit"
	"github.com/assay-gpu/assay/scheduler/queue"
)

// States of a job that still goes on. How it ended is in the words of package queue.
const (
	jobPending  = "PENDING"
	jobStarting = "STARTING" // its nodes are reserved
	jobRunning  = "RUNNING"
	jobEnding   = "ENDING"
)

// A job is what is stored of one. Its script and environment are kept beside it, once for all jobs that have the same.
type job struct {
	wire.Job
	Ask    wire.JobAsk `json:"ask"` // as submitted, without script and environment
	Script int64       `json:"script_of"`
	Batch  string      `json:"batch,omitempty"` // the batch it came in
	Line   int         `json:"line,omitempty"`  // and its line there
	Queue  queue.Job   `json:"queue"`           // as the queue had it when it was last written
	// Ending is how the last launch ended, until the queue has said what follows.
	Ending *queue.Ending `json:"ending,omitempty"`
}

// A script is what a job runs.
type script struct {
	Text string   `json:"text"`
	Env  []string `json:"env,omitempty"` // NAME=VALUE
}

// A batchLine is a job's line of a batch.
type batchLine struct {
	key  string
	line int
}

// over reports whether the job will not run again.
func (j job) over() bool {
	switch j.State {
	case jobPending, jobStarting, jobRunning, jobEnding:
		return false
	}
	return true
}

// A jobState is what the state holds of jobs.
type jobState struct {
	jobs       map[int64]job // those that ended among them
	arrays     map[int64]array
	scripts    map[int64]script
	scriptUses map[int64]int // jobs that have each
	batches    map[batchLine]int64
	logs       map[int64]wire.JobLogs
	launches   map[string]launch              // not over
	launchesOn map[string]map[string]struct{} // by node: ids of launches
}

func newJobState() jobState {
	return jobState{jobs: map[int64]job{}, arrays: map[int64]array{}, scripts: map[int64]script{}, scriptUses: map[int64]int{}, batches: map[batchLine]int64{}, logs: map[int64]wire.JobLogs{}, launches: map[string]launch{},
		launchesOn: map[string]map[string]struct{}{}}
}

// jobChanges are what a transaction does to them.
type jobChanges struct {
	jobs     map[int64]*job    // nil: no longer kept
	arrays   map[int64]*array  // nil: no longer kept
	tasks    map[int64]job     // of new arrays: they follow from those and are not written
	scripts  map[int64]*script // nil: no longer kept
	logs     map[int64]wire.JobLogs
	launches map[string]*launch // nil: over
}

func newJobChanges() jobChanges {
	return jobChanges{jobs: map[int64]*job{}, arrays: map[int64]*array{}, tasks: map[int64]job{}, scripts: map[int64]*script{}, logs: map[int64]wire.JobLogs{}, launches: map[string]*launch{}}
}

func (c jobChanges) clone() jobChanges {
	return jobChanges{jobs: maps.Clone(c.jobs), arrays: maps.Clone(c.arrays), tasks: maps.Clone(c.tasks), scripts: maps.Clone(c.scripts), logs: maps.Clone(c.logs), launches: maps.Clone(c.launches)}
}

// A launch is one under way, with what follows from it.
type launch struct {
	commit.Launch
	seat map[string]int // by node: its place in Seats
	base []int          // by seat: its first rank
	list string         // its nodes as a hostlist, in rank order
}

func (t *tx) job(id int64) (job, bool) {
	if j, ok := t.jobs[id]; ok {
		if j == nil {
			return job{}, false
		}
		return *j, true
	}
	if j, ok := t.tasks[id]; ok {
		return j, true
	}
	j, ok := t.base.jobs[id]
	return j, ok
}

func (t *tx) launch(id string) (launch, bool) {
	if l, ok := t.launches[id]; ok {
		if l == nil {
			return launch{}, false
		}
		return *l, true
	}
	l, ok := t.base.launches[id]
	return l, ok
}

func (t *tx) setJob(j job) { t.jobs[j.ID] = &j }

// setLaunch keeps l and has its nodes hear of it when its phase is another.
func (t *tx) setLaunch(l launch) {
	if before, ok := t.launch(l.ID); !ok || before.Phase != l.Phase {
		for _, s := range l.Seats {
			t.woken[s.Node] = true
		}
	}
	t.launches[l.ID] = &l
}

// dropLaunch forgets a launch that is over, and has its nodes forget it.
func (t *tx) dropLaunch(l launch) {
	for _, s := range l.Seats {
		t.woken[s.Node] = true
	}
	t.launches[l.ID] = nil
}

// jobKey writes a job's id so that text order is number order.
func jobKey(id int64) string { return fmt.Sprintf("%012d", id) }

func (t *tx) jobOps(put func(string, any), drop func(string)) {
	for _, id := range sortedKeys(t.jobs) {
		if j := t.jobs[id]; j != nil {
			put(keyJobs+jobKey(id), j)
			continue
		}
		drop(keyJobs + jobKey(id))
		drop(keyLogs + jobKey(id))
	}
	for _, id := range sortedKeys(t.arrays) {
		if a := t.arrays[id]; a != nil {
			put(keyArrays+jobKey(id), a)
		} else {
			drop(keyArrays + jobKey(id))
		}
	}
	for _, id := range sortedKeys(t.scripts) {
		if sc := t.scripts[id]; sc != nil {
			put(keyScripts+jobKey(id), sc)
		} else {
			drop(keyScripts + jobKey(id))
		}
	}
	for _, id := range sortedKeys(t.logs) {
		put(keyLogs+jobKey(id), t.logs[id])
	}
	for _, id := range sortedKeys(t.launches) {
		if l := t.launches[id]; l != nil {
			put(keyGangs+id, l.Launch)
		} else {
			drop(keyGangs + id)
		}
	}
}

// jobSize is how many operations they make.
func (c *jobChanges) jobSize() int {
	n := len(c.scripts) + len(c.arrays) + len(c.logs) + len(c.launches)
	for _, j := range c.jobs {
		if n++; j == nil {
			n++
		}
	}
	return n
}

func (t *tx) publishJobs() {
	s := t.base
	for _, j := range t.tasks {
		s.setJob(j)
	}
	for id, j := range t.jobs {
		if j == nil {
			s.dropJob(id)
			continue
		}
		s.setJob(*j)
	}
	for id, a := range t.arrays {
		if a == nil {
			delete(s.arrays, id)
		} else {
			s.arrays[id] = *a
		}
	}
	for id, sc := range t.scripts {
		if sc == nil {
			delete(s.scripts, id)
		} else {
			s.scripts[id] = *sc
		}
	}
	maps.Copy(s.logs, t.logs)
	for id, l := range t.launches {
		if l == nil {
			s.dropLaunch(id)
		} else {
			s.setLaunch(*l)
		}
	}
}

// loadJob takes in one stored key of a job.
func (s *state) loadJob(e store.Entry) error {
	if name, ok := strings.CutPrefix(e.Key, keyGangs); ok {
		var l commit.Launch
		if err := json.Unmarshal(e.Value, &l); err != nil {
			return err
		}
		if l.ID != name {
			return fmt.Errorf("launch %s is stored as %s", l.ID, name)
		}
		s.setLaunch(indexed(l))
		return nil
	}
	prefix, name, _ := strings.Cut(e.Key, "/")
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return err
	}
	switch prefix + "/" {
	case keyArrays:
		return s.loadArray(e)
	case keyScripts:
		return into(e, s.scripts, id, new(script))
	case keyLogs:
		return into(e, s.logs, id, new(wire.JobLogs))
	}
	var j job
	if err := json.Unmarshal(e.Value, &j); err != nil {
		return err
	}
	s.setJob(j)
	return nil
}

// setJob and dropJob keep the indexes of scripts and batches.
func (s *state) setJob(j job) {
	if _, known := s.jobs[j.ID]; !known {
		s.scriptUses[j.Script]++
		if j.Batch != "" {
			s.batches[batchLine{j.Batch, j.Line}] = cmp.Or(j.Array, j.ID)
		}
	}
	s.jobs[j.ID] = j
}

func (s *state) dropJob(id int64) {
	j, ok := s.jobs[id]
	if !ok {
		return
	}
	if s.scriptUses[j.Script]--; s.scriptUses[j.Script] <= 0 {
		delete(s.scriptUses, j.Script)
	}
	if j.Batch != "" {
		delete(s.batches, batchLine{j.Batch, j.Line})
	}
	delete(s.jobs, id)
	delete(s.logs, id)
}

// setLaunch and dropLaunch keep the index of launches by node.
func (s *state) setLaunch(l launch) {
	s.launches[l.ID] = l
	for _, seat := range l.Seats {
		if s.launchesOn[seat.Node] == nil {
			s.launchesOn[seat.Node] = map[string]struct{}{}
		}
		s.launchesOn[seat.Node][l.ID] = struct{}{}
	}
}

func (s *state) dropLaunch(id string) {
	for _, seat := range s.launches[id].Seats {
		delete(s.launchesOn[seat.Node], id)
		if len(s.launchesOn[seat.Node]) == 0 {
			delete(s.launchesOn, seat.Node)
		}
	}
	delete(s.launches, id)
}
