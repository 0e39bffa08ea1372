package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/sbatch"
)

// submitFlags are sbatch's options that can be given on the command line, where they win over the script's.
var submitFlags = []struct{ name, short, usage string }{
	{"job-name", "J", "name of the job"},
	{"nodes", "N", "nodes of the gang"},
	{"ntasks-per-node", "", "ranks on each node (default: one for each GPU)"},
	{"gres", "", "GPUs of each node, as gpu:8"},
	{"gpus-per-node", "", "GPUs of each node (default: the whole node)"},
	{"time", "t", "limit, as minutes, hours:minutes:seconds or days-hours"},
	{"certified", "", "LEVEL[:AGE][:through]: how deep the certificates must be, how young, and whether they must hold to the end"},
	{"switches", "", "N[@TIME]: leaf switches at most, for so long"},
	{"segment", "", "nodes that must be under one leaf"},
	{"chdir", "D", "working directory on the nodes"},
	{"stdout", "", "file on the nodes for what ranks write; %j the job, %x its name, %t the rank"},
	{"dependency", "d", "afterok:JOB, afterany:JOB, …"},
	{"begin", "b", "not before this date and time"},
	{"export", "", "ALL, NONE, or names of variables"},
	{"partition", "p", "where it waits and runs; of several, a,b, where it can first"},
	{"qos", "q", "class of service"},
	{"account", "A", "whom it is charged to"},
	{"reservation", "", "run in this reservation, and nowhere else"},
	{"array", "a", "tasks, as 0-99%8: indices, and how many at once"},
	{"deadline", "", "must have ended by this date and time"},
	{"nice", "", "lowers its priority by so much"},
	{"near", "", "required[:HEIGHT], preferred[:HEIGHT] or anywhere: how close together; 0 is a leaf"},
	{"parallel", "", "tp=N,pp=N,dp=N: shape of a training job; with --gpus-per-node"},
	{"per-leaf", "", "nodes under one leaf at most"},
}

// submitSwitches are those without a value.
var submitSwitches = []struct{ name, short, usage string }{
	{"requeue", "", "start it again when a node fails under it"},
	{"hold", "H", "do not start it before it is released"},
	{"exclusive", "", "whole nodes, whatever of them it uses"},
	{"spread", "", "on the emptiest leaves and nodes"},
}

func (a *app) jobSubmitCmd() *cobra.Command {
	var dryRun, wait bool
	var batch, key, save string
	values, switches := make([]string, len(submitFlags)), make([]bool, len(submitSwitches))
	var cmd *cobra.Command
	cmd = a.command(spec{
		use: "submit SCRIPT", short: "Submit a script as a gang", args: cobra.MaximumNArgs(1), follow: true,
		long: `The script's #SBATCH lines say what it needs. It is run once for each rank, on every node or on none: first every
node of the gang checks itself again, then all start together. SCRIPT may be - for standard input.

An option that assay cannot honour is refused; one that makes no difference is told.

With --batch, FILE holds a job a line: the options and the script, as on this command line. All are submitted by one process
and are durable when it says so. Faults are told by line, and the other lines are submitted. If it breaks off, say it again
with the --batch-key that it printed: lines that were taken are not taken twice.`,
		example: "  assay job submit train.sbatch\n  assay job submit train.sbatch --nodes 8 --certified soak:7d --dry-run\n  assay job submit sweep.sh --array 0-99%8 --qos high\n  assay job submit --batch jobs.txt\n  assay job submit test.sh --wait",
		flags: func(cmd *cobra.Command) {
			f := cmd.Flags()
			for i, o := range submitFlags {
				f.StringVarP(&values[i], o.name, o.short, "", o.usage)
			}
			for i, o := range submitSwitches {
				f.BoolVarP(&switches[i], o.name, o.short, false, o.usage)
			}
			for name, o := range map[string]offer{"partition": offerPartitions, "qos": offerQOS, "account": offerAccounts, "reservation": offerReservations, "certified": fixed(levelNames()...)} {
				a.completeFlag(cmd, name, o)
			}
			f.BoolVar(&dryRun, "dry-run", false, "only say where it would start now, or why not")
			f.StringVar(&save, "save", "", "with --dry-run: keep the question, job and fleet, in this `FILE`; assay job replay asks it again")
			f.BoolVar(&wait, "wait", false, "wait for its end; exit status 1 unless it completed")
			f.StringVar(&batch, "batch", "", "submit the jobs of this `FILE`, one a line")
			f.StringVar(&key, "batch-key", "", "with --batch: go on with the batch that this `KEY` was printed for")
			cmd.MarkFlagsMutuallyExclusive("dry-run", "wait", "batch")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			var options []string
			for i, o := range submitFlags {
				name := o.name
				if name == "stdout" {
					name = "output"
				}
				if cmd.Flags().Changed(o.name) {
					options = append(options, "--"+name+"="+values[i])
				}
			}
			for i, o := range submitSwitches {
				if switches[i] {
					options = append(options, "--"+o.name)
				}
			}
			if save != "" && !dryRun {
				return &usageError{"--save without --dry-run", "it keeps what a dry run asks"}
			}
			if batch != "" {
				if len(args) > 0 {
					return &usageError{"a script beside --batch", "name the scripts in the file"}
				}
				return a.submitBatch(ctx, c, batch, key, options)
			}
			if len(args) == 0 || key != "" {
				return &usageError{"name the job's script, or - for standard input", "with --batch FILE, and there alone, --batch-key goes"}
			}
			script, err := a.readScript(args[0])
			if err != nil {
				return err
			}
			ask, ignored, err := a.askFor(args[0], script, options)
			if err != nil {
				return err
			}
			if len(ignored) > 0 {
				fmt.Fprintf(a.err, "makes no difference here: %s\n", strings.Join(ignored, ", "))
			}
			sctx, cancel := context.WithTimeoutCause(ctx, a.timeout, fmt.Errorf("no answer within %s", a.timeout))
			defer cancel()
			if dryRun {
				return a.dryRun(sctx, c, ask, save)
			}
			j, err := c.Submit(sctx, ask)
			if err != nil {
				return err
			}
			if !wait {
				return a.emit(j, func() error {
					if len(ask.Array) > 0 {
						fmt.Fprintf(a.out, "array %d submitted, %s\n", j.ID, count(len(ask.Array), "task"))
						return nil
					}
					fmt.Fprintf(a.out, "job %d submitted\n", j.ID)
					return nil
				})
			}
			return a.waitJob(ctx, c, j)
		},
	})
	return cmd
}

func (a *app) readScript(name string) (string, error) {
	const most = 1 << 20
	r := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", &usageError{err.Error(), "name the job's script, or - for standard input"}
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, most))
	if err != nil {
		return "", &usageError{fmt.Sprintf("read the script: %v", err), "name a file"}
	}
	return string(data), nil
}

// askFor makes of a script and options what the control plane is asked.
func (a *app) askFor(name, script string, options []string) (wire.JobAsk, []string, error) {
	r, ignored, err := sbatch.Parse(script, options, a.now().Local())
	if err != nil {
		return wire.JobAsk{}, nil, &usageError{err.Error(), "`assay job submit --help` lists the options"}
	}
	dir := r.Dir
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return wire.JobAsk{}, nil, fmt.Errorf("working directory: %w", err)
		}
	}
	if r.Name == "" {
		if r.Name = filepath.Base(name); name == "-" {
			r.Name = "stdin"
		}
	}
	return wire.JobAsk{
		Name: r.Name, Script: script, Dir: dir, Output: r.Output, Env: exported(r), Gang: r.Gang, Partition: r.Partition, Account: r.Account,
		QOS: r.QOS, Requeue: r.Requeue, Begin: r.Begin, Hold: r.Hold, Nice: r.Nice, After: r.After,
		Deadline: r.Deadline, Reservation: r.Reservation, Array: r.Array, Throttle: r.Throttle,
	}, ignored, nil
}

// exported is the part of the submitter's environment that goes with the job. What is this host's own stays here.
func exported(r sbatch.Request) []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if r.ExportAll && !local(name) {
			env = append(env, e)
		}
	}
	for _, e := range r.Export {
		if name, _, given := strings.Cut(e, "="); !given {
			if v, ok := os.LookupEnv(name); ok {
				e = name + "=" + v
			} else {
				continue
			}
		}
		env = append(env, e)
	}
	return env
}

// local reports whether a variable means something on this host or in this login alone.
func local(name string) bool {
	switch name {
	case "HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "HOSTNAME", "TERM", "DISPLAY", "TMPDIR", "MAIL", "_", "SHLVL":
		return true
	}
	for _, p := range []string{"SSH_", "XDG_", "DBUS_", "SUDO_", "SYSTEMD_", "NOTIFY_", "CUDA_VISIBLE", "SLURM_", "BASH_FUNC_"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func (a *app) dryRun(ctx context.Context, c *client.Client, ask wire.JobAsk, save string) error {
	plan, err := c.PlanJob(ctx, ask, save != "")
	if err != nil {
		return err
	}
	if save != "" {
		if err := saveQuestion(save, plan); err != nil {
			return err
		}
		plan.Question = nil
	}
	err = a.emit(plan, func() error { return a.showPlan(plan) })
	if err == nil && plan.Refused != "" {
		return errFault
	}
	return err
}

// waitJob follows a job to its end.
func (a *app) waitJob(ctx context.Context, c *client.Client, j wire.Job) error {
	fmt.Fprintf(a.err, "job %d submitted\n", j.ID)
	last := ""
	for {
		if text := a.whyText(j); text != last {
			fmt.Fprintln(a.err, text)
			last = text
		}
		if !j.Ended.IsZero() {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("job %d goes on: %w", j.ID, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
		rctx, cancel := context.WithTimeout(ctx, a.timeout)
		next, err := c.Job(rctx, strconv.FormatInt(j.ID, 10))
		cancel()
		if err != nil {
			return err
		}
		j = next
	}
	if len(j.Tasks) > 0 {
		if err := a.emit(j, func() error { return a.showJob(j) }); err != nil || j.State == "COMPLETED" {
			return err
		}
		return errFault
	}
	logs, err := c.JobLogs(ctx, strconv.FormatInt(j.ID, 10))
	if err != nil {
		return err
	}
	if err := a.emit(logs, func() error { return a.showLogs(logs) }); err != nil {
		return err
	}
	if j.State != "COMPLETED" {
		return errFault
	}
	return nil
}
