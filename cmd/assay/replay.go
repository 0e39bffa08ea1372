package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
)

// saveQuestion keeps a dry run with its answer.
func saveQuestion(file string, plan wire.JobPlan) error {
	if plan.Question == nil {
		return fmt.Errorf("save the dry run: %s, before the fleet was asked", plan.Refused)
	}
	data, err := json.MarshalIndent(plan, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// showPlan says where a job would start, or why it would wait.
func (a *app) showPlan(plan wire.JobPlan) error {
	if plan.Refused != "" {
		fmt.Fprintln(a.out, "would wait:", clean(plan.Refused))
		return nil
	}
	fmt.Fprintf(a.out, "would start now on %s\n", clean(plan.Nodes))
	for _, w := range plan.Where {
		fmt.Fprintf(a.out, "  %s\n", clean(w))
	}
	return nil
}

func (a *app) jobReplayCmd() *cobra.Command {
	return a.command(spec{
		use: "replay FILE", short: "Ask a saved dry run again, without a control plane", args: cobra.ExactArgs(1), local: true,
		long: `FILE is what assay job submit --dry-run --save wrote: the job, the whole fleet as it was then, and the answer. The same fleet
and job give the same answer, with this version of assay too, or it says so.

Exits 1 when the answer is another one than then.`,
		example: "  assay job submit train.sbatch --dry-run --save odd.json\n  assay job replay odd.json",
		run: func(_ context.Context, _ *client.Client, args []string) error {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return &usageError{err.Error(), "name what --dry-run --save wrote"}
			}
			var then wire.JobPlan
			if err := json.Unmarshal(data, &then); err != nil || then.Question == nil {
				return &usageError{fmt.Sprintf("%s is no saved dry run", args[0]), "assay job submit SCRIPT --dry-run --save FILE writes one"}
			}
			s, g, err := then.Question.Load()
			if err != nil {
				return &usageError{fmt.Sprintf("%s: %v", args[0], err), "save it anew"}
			}
			p := scheduler.Place(s, g)
			now := wire.JobPlan{Cost: p.Cost}
			if p.OK() {
				now.Nodes, now.Where = s.Where(p)
			} else {
				now.Refused = s.Why(g, p.Refused)
			}
			same := now.Nodes == then.Nodes && now.Cost == then.Cost && now.Refused == then.Refused
			err = a.emit(now, func() error {
				word := "the same answer as then"
				if !same {
					word = "another answer than then"
				}
				fmt.Fprintf(a.err, "%d nodes as they were at %s, fingerprint %.12s: %s\n", s.Len(), s.Now().UTC().Format(time.RFC3339), then.Question.Fingerprint, word)
				return a.showPlan(now)
			})
			if err == nil && !same {
				return errFault
			}
			return err
		},
	})
}
