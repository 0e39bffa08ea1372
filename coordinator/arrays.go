package coordinator

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/queue"
)

// An array is many jobs that were submitted as one. It is one key of the store: a task gets a key of its own when something
// first happens to it, so that an array of thousands is taken whole or not at all, in one transaction.
type array struct {
	ID       int64 `json:"id"`       // no job has it
	First    int64 `json:"first"`    // the first task's; the others follow
	Tasks    []int `json:"tasks"`    // indices
	Template job   `json:"template"` // what its tasks have in common
	// Spent says that tasks without a key of their own are no more: the array has ended, and is being forgotten.
	Spent bool `json:"spent,omitempty"`
}

// task is task number k as it was submitted.
func (a *array) task(k int) job {
	j := a.Template
	j.ID, j.Array, j.Task = a.First+int64(k), a.ID, a.Tasks[k]
	j.Gang.ID = strconv.FormatInt(j.ID, 10)
	j.Queue.ID, j.Queue.Array, j.Queue.Task = j.ID, j.Array, j.Task
	return j
}

// loadArray takes in one stored array; its tasks follow when all keys have been read.
func (s *state) loadArray(e store.Entry) error {
	var a array
	if err := json.Unmarshal(e.Value, &a); err != nil {
		return err
	}
	if e.Key != keyArrays+jobKey(a.ID) {
		return fmt.Errorf("array %d is stored as %s", a.ID, e.Key)
	}
	s.arrays[a.ID] = a
	return nil
}

// expand makes the tasks of arrays to which nothing has happened yet.
func (s *state) expand() {
	for _, id := range sortedKeys(s.arrays) {
		a := s.arrays[id]
		for k := range a.Tasks {
			if _, own := s.jobs[a.First+int64(k)]; !own && !a.Spent {
				s.setJob(a.task(k))
			}
		}
	}
}

// array is the array of that id as this transaction leaves it.
func (t *tx) array(id int64) (array, bool) {
	if a, ok := t.arrays[id]; ok {
		if a == nil {
			return array{}, false
		}
		return *a, true
	}
	a, ok := t.base.arrays[id]
	return a, ok
}

// setArray keeps a new array, and its tasks in memory.
func (t *tx) setArray(a array) {
	t.arrays[a.ID] = &a
	for k := range a.Tasks {
		j := a.task(k)
		t.tasks[j.ID] = j
	}
}

// dropJob forgets a job that has ended: its output, and the script when no other job has it. Of an array the last task takes
// the array with it.
func (t *tx) dropJob(id int64) {
	j, ok := t.job(id)
	if !ok || !j.over() {
		return
	}
	if a, ok := t.array(j.Array); ok {
		left := 0
		for k := range a.Tasks {
			if other, ok := t.job(a.First + int64(k)); ok {
				if left++; !other.over() {
					return // as long as a task goes on the array is kept whole
				}
			}
		}
		if left > 1 {
			if !a.Spent {
				a.Spent = true
				t.arrays[a.ID] = &a
			}
		} else {
			t.arrays[a.ID] = nil
		}
	}
	t.jobs[id] = nil
	delete(t.tasks, id)
	if t.uses(j.Script)-1 <= 0 {
		t.scripts[j.Script] = nil
	}
}

// uses is how many jobs have a script.
func (t *tx) uses(script int64) int {
	n := t.base.scriptUses[script]
	for id, j := range t.jobs {
		_, before := t.base.jobs[id]
		switch {
		case j == nil && before && t.base.jobs[id].Script == script:
			n--
		case j != nil && !before && j.Script == script:
			n++
		}
	}
	return n
}

// tasksOf are the ids that an order to id means: a job's own, or those of an array's tasks that go on.
func (t *tx) tasksOf(id int64) []int64 {
	a, ok := t.array(id)
	if !ok {
		return []int64{id}
	}
	var ids []int64
	for k := range a.Tasks {
		if j, ok := t.job(a.First + int64(k)); ok && !j.over() {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// viewArray is an array as if it were a job, with its tasks counted by state.
func (s *state) viewArray(a array) wire.Job {
	v := a.Template.Job
	v.ID, v.Tasks = a.ID, map[string]int{}
	over := true
	for k := range a.Tasks {
		j, ok := s.jobs[a.First+int64(k)]
		if !ok {
			continue
		}
		v.Tasks[j.State]++
		over = over && j.over()
		if v.Started.IsZero() || !j.Started.IsZero() && j.Started.Before(v.Started) {
			v.Started = j.Started
		}
		if j.Ended.After(v.Ended) {
			v.Ended = j.Ended
		}
		v.Launches += j.Launches
	}
	switch {
	case v.Tasks[jobRunning]+v.Tasks[jobStarting]+v.Tasks[jobEnding] > 0:
		v.State = jobRunning
	case !over:
		v.State = jobPending
	case v.Tasks[queue.Completed.String()] == len(a.Tasks):
		v.State = queue.Completed.String()
	default:
		v.State = queue.Failed.String()
		if v.Tasks[queue.Cancelled.String()] > 0 && v.Tasks[queue.Failed.String()] == 0 {
			v.State = queue.Cancelled.String()
		}
	}
	if !over {
		v.Ended = time.Time{}
	}
	return v
}

// findJob is the id that a text names: a job's, an array's, or ARRAY_TASK.
func (s *state) findJob(text string) (int64, error) {
	first, task, isTask := strings.Cut(text, "_")
	id, err := strconv.ParseInt(first, 10, 64)
	if err != nil || id <= 0 {
		return 0, &invalidError{fmt.Sprintf("%.40q is no job's id", text), "they are numbers, and of a task of an array ARRAY_TASK"}
	}
	if !isTask {
		return id, nil
	}
	index, err := strconv.Atoi(task)
	if err != nil {
		return 0, &invalidError{fmt.Sprintf("%.40q is no task's id", text), "write ARRAY_TASK, as 12_3"}
	}
	a, ok := s.arrays[id]
	if !ok {
		return 0, &notFoundError{fmt.Sprintf("array %d", id), "`assay job list --all` shows the jobs that are kept"}
	}
	for k, t := range a.Tasks {
		if t == index {
			return a.First + int64(k), nil
		}
	}
	return 0, &notFoundError{fmt.Sprintf("task %d of array %d", index, id), fmt.Sprintf("`assay job show %d` shows its tasks", id)}
}
