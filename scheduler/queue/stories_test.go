package queue

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/scheduler/quota"
)

// A story is a queue that the files under testdata drive. Time is in seconds from 0, or as 5m, 2h, 1d. Commands:
//
//	fleet nodes=N gpus=N cpus=N     one line each: weights …, partition …, qos …, account …, requeue …, flags …
//	submit ID key=value…            answers only when refused
//	order [at=T]                    who may start, with priority; then who waits and why
//	factors ID [at=T]
//	start|cancel|hold|release ID [at=T] [admin]
//	end ID STATE [exit=N] [node=N] [launch] [again] [at=T]
//	admit ID [at=T]                 against the limits, as things stand
//	reserve NAME start=T end=T …
//	tick [at=T], job ID
type story struct {
	q   *Queue
	cfg Config
	now int64
}

func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := s.run(d)
			if err != nil {
				var refused *RefusedError
				if errors.As(err, &refused) {
					return string(refused.Reason.Code) + ": " + refused.Reason.Text
				}
				return "error: " + err.Error()
			}
			return out
		})
	})
}

func (s *story) run(d *datadriven.TestData) (string, error) {
	args := map[string]string{}
	var words []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			words = append(words, a.Key)
			continue
		}
		args[a.Key] = strings.Join(a.Vals, ",")
	}
	if at, ok := args["at"]; ok {
		n, err := seconds(at)
		if err != nil {
			return "", err
		}
		s.now = n
	}
	var id int64
	if len(words) > 0 {
		id, _ = strconv.ParseInt(words[0], 10, 64)
	}
	switch d.Cmd {
	case "fleet":
		return "", s.fleet(args, d.Input)
	case "submit":
		return "", s.submit(id, args)
	case "order":
		return s.order(), nil
	case "factors":
		f := s.q.Factors(id, s.now)
		return fmt.Sprintf("age %.4f assoc %.4f fairshare %.4f jobsize %.4f partition %.4f qos %.4f gpu %.4f: %d", f.Age, f.Assoc, f.FairShare,
			f.JobSize, f.Partition, f.QOS, f.TRES[quota.GPUs], s.q.Key(id, s.now).Priority), nil
	case "start":
		return "", s.q.Start(id, s.now)
	case "cancel":
		return "", s.q.Cancel(id, s.now)
	case "hold":
		s.q.Hold(id, len(words) > 1)
		return "", nil
	case "release":
		return "", s.q.Release(id, len(words) > 1)
	case "end":
		return s.end(id, words, args)
	case "admit":
		r := s.q.Budget().Admit(s.q.Job(id), s.now)
		if r.Code == NoReason {
			return "yes", nil
		}
		return string(r.Code) + ": " + r.Text, nil
	case "reserve":
		return "", s.reserve(words[0], args, words[1:])
	case "tick":
		s.q.Tick(s.now)
		return "", nil
	case "job":
		j := s.q.Job(id)
		return fmt.Sprintf("%s starts=%d attempts=%d avoid=%v", j.State, j.Starts, j.Attempts, s.q.Avoid(j, s.now)), nil
	}
	return "", fmt.Errorf("no command %s", d.Cmd)
}

func (s *story) end(id int64, words []string, args map[string]string) (string, error) {
	e := Ending{Node: args["node"], At: s.now}
	for i, n := range stateNames {
		if words[1] == n {
			e.State = State(i)
		}
	}
	e.Exit, _ = strconv.Atoi(args["exit"])
	e.Launch, e.Again = slices.Contains(words[2:], "launch"), slices.Contains(words[2:], "again")
	r, err := s.q.End(id, e)
	out := ""
	if r.Requeued {
		out += "requeued"
	}
	if r.Held {
		out += ", held"
	}
	if r.Suspect != "" {
		out += ", suspect " + r.Suspect
	}
	return out, err
}

func (s *story) order() string {
	var b strings.Builder
	entries := s.q.Order(s.now)
	for _, e := range entries {
		fmt.Fprintf(&b, "%d %d", e.Job.ID, e.Key.Priority)
		if e.Key.Expedited {
			b.WriteString(" expedited")
		}
		if e.Key.Borrows {
			b.WriteString(" borrows")
		}
		b.WriteByte('\n')
	}
	for _, id := range s.q.Pending() {
		if r := s.q.Job(id).Why; r.Code != NoReason {
			fmt.Fprintf(&b, "%d waits: %s: %s\n", id, r.Code, r.Text)
		}
	}
	return b.String()
}

func (s *story) submit(id int64, args map[string]string) error {
	j := Job{ID: id, User: "ann", Account: "team", Partition: "batch", QOS: "normal", Nodes: 1, GPUsPerNode: 8, Limit: 3600, Requeue: true}
	tasks := 0
	for k, v := range args {
		n, _ := strconv.Atoi(v)
		var err error
		switch k {
		case "user":
			j.User = v
		case "account":
			j.Account = v
		case "partition":
			j.Partition = v
		case "qos":
			j.QOS = v
		case "name":
			j.Name = v
		case "nodes":
			j.Nodes = n
		case "gpus":
			j.GPUsPerNode = n
		case "cpus":
			j.CPUsPerNode = n
		case "nice":
			j.Nice = n
		case "site":
			j.Site = n
		case "limit":
			j.Limit, err = seconds(v)
		case "begin":
			j.Begin, err = seconds(v)
		case "deadline":
			j.Deadline, err = seconds(v)
		case "after":
			j.After, err = ParseDependencies(v)
		case "reservation":
			j.Reservation = v
		case "array":
			tasks = n
		case "throttle":
			j.Throttle = n
		case "requeueexit":
			j.RequeueExit = []int{n}
		case "requeue":
			j.Requeue = v == "yes"
		case "at":
		default:
			err = fmt.Errorf("no field %s", k)
		}
		if err != nil {
			return err
		}
	}
	for i := range tasks {
		task := j
		task.ID, task.Array, task.Task = id+int64(i), id, i
		if err := s.q.Submit(task, s.now); err != nil {
			return err
		}
	}
	if tasks > 0 {
		return nil
	}
	return s.q.Submit(j, s.now)
}

func (s *story) reserve(name string, args map[string]string, flags []string) error {
	r := Reservation{Name: name}
	var err error
	for k, v := range args {
		switch k {
		case "start":
			r.Start, err = seconds(v)
		case "end":
			r.End, err = seconds(v)
		case "repeat":
			r.Repeat, err = seconds(v)
		case "users":
			r.Users = strings.Split(v, ",")
		case "accounts":
			r.Accounts = strings.Split(v, ",")
		}
		if err != nil {
			return err
		}
	}
	for _, f := range flags {
		switch f {
		case "maint":
			r.Maint = true
		}
	}
	s.q.SetReservations(append(s.q.Reservations(), r))
	return nil
}

func seconds(s string) (int64, error) {
	unit := int64(1)
	for suffix, n := range map[string]int64{"m": 60, "h": 3600, "d": 86400} {
		if strings.HasSuffix(s, suffix) {
			s, unit = strings.TrimSuffix(s, suffix), n
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n * unit, err
}
