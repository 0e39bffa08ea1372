package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) jobCmd() *cobra.Command {
	return a.groupCmd("job", "Run gangs on certified nodes: whole, close together, or not yet and why",
		"  assay job submit train.sbatch\n  assay job submit train.sbatch --dry-run\n  assay job why 12\n  assay job logs 12",
		a.jobSubmitCmd(), a.jobListCmd(), a.jobShowCmd(), a.jobWhyCmd(), a.jobReplayCmd(), a.jobLogsCmd(),
		a.jobVerbCmd("cancel", "End jobs, whether they wait or run", "Every rank is ended everywhere: SIGTERM, and SIGKILL after 10 s.", (*client.Client).CancelJob),
		a.jobVerbCmd("hold", "Keep waiting jobs from starting", "", (*client.Client).HoldJob),
		a.jobVerbCmd("release", "Let held jobs go on", "A job held after it failed to start too often may try again.", (*client.Client).ReleaseJob),
		a.jobVerbCmd("requeue", "Put jobs that run, or have ended, back into the queue",
			"A job keeps its number. What runs of it is ended everywhere first. It starts again whether it said --requeue or not, and failures before count no more.", (*client.Client).RequeueJob))
}

func (a *app) queueCmd() *cobra.Command {
	return a.command(spec{
		use: "queue", short: "Show what runs and what waits, and for what", args: cobra.NoArgs, example: "  assay queue",
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			js, err := c.Jobs(ctx, false)
			if err != nil {
				return err
			}
			return a.emit(js, func() error { return a.jobRows(js) })
		},
	})
}

func (a *app) jobListCmd() *cobra.Command {
	var all bool
	return a.command(spec{
		use: "list", short: "List jobs", args: cobra.NoArgs, example: "  assay job list --all",
		flags: func(cmd *cobra.Command) { cmd.Flags().BoolVar(&all, "all", false, "those that have ended too") },
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			js, err := c.Jobs(ctx, all)
			if err != nil {
				return err
			}
			return a.emit(js, func() error { return a.jobRows(js) })
		},
	})
}

func (a *app) jobRows(js []wire.Job) error {
	if len(js) == 0 {
		fmt.Fprintln(a.err, "no jobs")
		return nil
	}
	header := []string{"job", "name", "user", "state", "nodes", "gpus", "time", "where or why"}
	if a.wide() {
		header = []string{"job", "name", "user", "account", "partition", "qos", "priority", "state", "nodes", "gpus", "time", "where or why"}
	}
	var rows [][]string
	list, ids := folded(js)
	for i, j := range list {
		row := []string{ids[i], clean(j.Name), clean(j.User)}
		if a.wide() {
			row = append(row, clean(j.Account), clean(j.Partition), clean(j.QOS), dash(positive(int64(j.Priority))))
		}
		where := jobWhere(j)
		if len(j.Tasks) > 0 {
			where = tasksText(j)
		}
		rows = append(rows, append(row, j.State, strconv.Itoa(j.Gang.Nodes), gpusText(j), a.jobTime(j), where))
	}
	return a.rows(header, rows)
}

// gpusText is the GPUs that a job has on each node.
func gpusText(j wire.Job) string {
	if j.Gang.GPUs == 0 {
		return "all"
	}
	return strconv.Itoa(j.Gang.GPUs)
}

// jobTime is how long a job has run, or ran.
func (a *app) jobTime(j wire.Job) string {
	switch {
	case j.Started.IsZero() || j.State == "PENDING" || j.State == "STARTING":
		return "-"
	case j.Ended.IsZero():
		return a.now().Sub(j.Started).Round(time.Second).String()
	}
	return j.Ended.Sub(j.Started).Round(time.Second).String()
}

// jobWhere is the nodes of a job that has some, and why it has none.
func jobWhere(j wire.Job) string {
	var parts []string
	if j.State != "PENDING" && j.Nodes != "" {
		parts = append(parts, clean(j.Nodes))
	}
	if j.Exit != 0 {
		parts = append(parts, "exit "+strconv.Itoa(j.Exit))
	}
	why := clean(j.Reason)
	if j.Code != "" && j.Code != j.Reason {
		why = strings.TrimSpace("(" + clean(j.Code) + ") " + why)
	}
	if why != "" {
		parts = append(parts, why)
	}
	return strings.Join(parts, "  ")
}

func (a *app) jobShowCmd() *cobra.Command {
	return a.command(spec{
		use: "show JOB", short: "Show one job", args: cobra.ExactArgs(1), offers: map[string]offer{"JOB": offerJobs}, example: "  assay job show 12",
		run: func(ctx context.Context, c *client.Client, args []string) error {
			id, err := jobID(args[0])
			if err != nil {
				return err
			}
			j, err := c.Job(ctx, id)
			if err != nil {
				return err
			}
			return a.emit(j, func() error { return a.showJob(j) })
		},
	})
}

func (a *app) showJob(j wire.Job) error {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return a.when(t)
	}
	exit := ""
	if j.Exit != 0 {
		exit = strconv.Itoa(j.Exit)
	}
	return a.facts(
		[2]string{"Job", fmt.Sprintf("%s %s of %s", jobName(j), clean(j.Name), clean(j.User))},
		[2]string{"State", j.State},
		[2]string{"Tasks", tasksText(j)},
		[2]string{"Runs in", fmt.Sprintf("partition %s, account %s, QOS %s", clean(j.Partition), clean(j.Account), clean(j.QOS))},
		[2]string{"Reservation", clean(j.Reservation)},
		[2]string{"Priority", positive(int64(j.Priority))},
		[2]string{"Why", strings.TrimSpace(clean(j.Reason))},
		[2]string{"Wants", fmt.Sprintf("%s, GPUs of each: %s, limit %s", count(j.Gang.Nodes, "node"), gpusText(j), limitText(j))},
		[2]string{"After", clean(j.After)},
		[2]string{"At once", positive(int64(j.Throttle))},
		[2]string{"Submitted", at(j.Submitted)},
		[2]string{"Not before", at(j.Begin)},
		[2]string{"Deadline", at(j.Deadline)},
		[2]string{"Expected", at(j.Planned)},
		[2]string{"Started", at(j.Started)},
		[2]string{"Ended", at(j.Ended)},
		[2]string{"Nodes", clean(j.Nodes)},
		[2]string{"Launch", clean(j.Launch)},
		[2]string{"Exit", exit},
	)
}

func limitText(j wire.Job) string {
	if j.Gang.Limit <= 0 {
		return "none"
	}
	return j.Gang.Limit.String()
}

// positive is n, and nothing where there is nothing.
func positive(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func (a *app) jobWhyCmd() *cobra.Command {
	return a.command(spec{
		use: "why JOB", short: "Say why a job waits, or how it ended", args: cobra.ExactArgs(1), offers: map[string]offer{"JOB": offerJobs}, example: "  assay job why 12",
		long: `Of a job of Slurm's it tells what assay had to do with it: on which node it was when that failed, or runs now; why the
node is out and since when, who owns the case, what happens next and when. Why a job waits in Slurm, Slurm says: squeue --start.`,
		run: func(ctx context.Context, c *client.Client, args []string) error {
			id, err := jobID(args[0])
			if err != nil {
				return err
			}
			j, err := c.Job(ctx, id)
			if unknownJob(err) {
				return a.slurmWhy(ctx, c, id, err)
			}
			if err != nil {
				return err
			}
			return a.emit(j, func() error {
				fmt.Fprintln(a.out, a.whyText(j))
				return nil
			})
		},
	})
}

func (a *app) whyText(j wire.Job) string {
	s := fmt.Sprintf("Job %s is %s", jobName(j), j.State)
	if len(j.Tasks) > 0 {
		return fmt.Sprintf("Array %d is %s: %s.", j.ID, j.State, tasksText(j))
	}
	if j.State != "PENDING" && j.Nodes != "" {
		s += " on " + clean(j.Nodes)
	}
	if j.Reason != "" {
		s += ": " + clean(j.Reason)
	}
	if j.Code != "" {
		s += " (" + clean(j.Code) + ")"
	}
	s += "."
	if !j.Planned.IsZero() {
		s += " Expected to start " + a.when(j.Planned) + "."
	}
	return s
}

func (a *app) jobLogsCmd() *cobra.Command {
	rank := -1
	return a.command(spec{
		use: "logs JOB", short: "Print the end of what a job's ranks wrote", args: cobra.ExactArgs(1), offers: map[string]offer{"JOB": offerJobs}, example: "  assay job logs 12\n  assay job logs 12 --rank 3",
		long:  "The control plane keeps the end of the output of rank 0 and of ranks that failed, and less of the others, once they have ended. The whole is in the file that --output names, on the nodes.",
		flags: func(cmd *cobra.Command) { cmd.Flags().IntVar(&rank, "rank", -1, "of this rank alone") },
		run: func(ctx context.Context, c *client.Client, args []string) error {
			id, err := jobID(args[0])
			if err != nil {
				return err
			}
			logs, err := c.JobLogs(ctx, id)
			if err != nil {
				return err
			}
			if rank >= 0 {
				logs.Ranks = slices.DeleteFunc(logs.Ranks, func(r wire.RankOutput) bool { return r.Rank != rank })
			}
			return a.emit(logs, func() error { return a.showLogs(logs) })
		},
	})
}

func (a *app) showLogs(logs wire.JobLogs) error {
	if len(logs.Ranks) == 0 {
		fmt.Fprintf(a.err, "job %d: nothing is kept; output comes when its ranks have ended\n", logs.Job)
		return nil
	}
	for _, r := range logs.Ranks {
		cut := ""
		if r.Cut {
			cut = ", the end of it"
		}
		fmt.Fprintf(a.err, "--- rank %d on %s%s\n", r.Rank, clean(r.Node), cut)
		text := cleanLines(r.Text)
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		fmt.Fprint(a.out, text)
	}
	return nil
}

func (a *app) jobVerbCmd(verb, short, long string, do func(*client.Client, context.Context, string, wire.JobVerb) (wire.Job, error)) *cobra.Command {
	var v wire.JobVerb
	return a.command(spec{
		use: verb + " JOB…", short: short, long: long, args: cobra.MinimumNArgs(1), example: "  assay job " + verb + " 12",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&v.Reason, "reason", "", "why, for those who come after")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			var ids []string
			for _, arg := range args { // all of them are right, or none is touched
				id, err := jobID(arg)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
			var js []wire.Job
			for _, id := range ids {
				j, err := do(c, ctx, id, v)
				if err != nil {
					return err
				}
				js = append(js, j)
			}
			return a.emit(js, func() error { return a.jobRows(js) })
		},
	})
}

// jobID checks what names a job: its number, an array's, or ARRAY_TASK.
func jobID(s string) (string, error) {
	array, task, isTask := strings.Cut(s, "_")
	id, err := strconv.ParseInt(array, 10, 64)
	_, err2 := strconv.ParseUint(task, 10, 32)
	if err != nil || id <= 0 || isTask && err2 != nil {
		return "", &usageError{fmt.Sprintf("job %q: want its number, or ARRAY_TASK", s), "`assay job list` shows the numbers"}
	}
	return s, nil
}

// jobName is a job's id as people know it: of a task of an array ARRAY_TASK.
func jobName(j wire.Job) string {
	if j.Array != 0 {
		return fmt.Sprintf("%d_%d", j.Array, j.Task)
	}
	return strconv.FormatInt(j.ID, 10)
}

// folded is jobs as a table shows them: the tasks of an array that wait for the same are one line, as squeue has it.
func folded(js []wire.Job) (rows []wire.Job, ids []string) {
	type key struct {
		array int64
		code  string
	}
	at, tasks := map[key]int{}, map[key][]int{}
	for _, j := range js {
		k := key{j.Array, j.Code}
		if j.Array == 0 || j.State != "PENDING" || j.Launches > 0 {
			rows, ids = append(rows, j), append(ids, jobName(j))
			continue
		}
		if tasks[k] = append(tasks[k], j.Task); len(tasks[k]) == 1 {
			at[k] = len(rows)
			rows, ids = append(rows, j), append(ids, "")
		}
	}
	for k, i := range at {
		if len(tasks[k]) == 1 {
			ids[i] = jobName(rows[i])
			continue
		}
		ids[i] = fmt.Sprintf("%d_[%s]", k.array, spans(tasks[k]))
		if rows[i].Throttle > 0 {
			ids[i] = fmt.Sprintf("%d_[%s%%%d]", k.array, spans(tasks[k]), rows[i].Throttle)
		}
	}
	return rows, ids
}

// spans writes sorted numbers as 0-3,7.
func spans(ns []int) string {
	var parts []string
	for i := 0; i < len(ns); {
		k := i
		for k+1 < len(ns) && ns[k+1] == ns[k]+1 {
			k++
		}
		if part := strconv.Itoa(ns[i]); k > i {
			parts = append(parts, part+"-"+strconv.Itoa(ns[k]))
		} else {
			parts = append(parts, part)
		}
		i = k + 1
	}
	return strings.Join(parts, ",")
}

// tasksText counts an array's tasks by state.
func tasksText(j wire.Job) string {
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(j.Tasks)) {
		parts = append(parts, fmt.Sprintf("%d %s", j.Tasks[state], state))
	}
	return strings.Join(parts, ", ")
}
