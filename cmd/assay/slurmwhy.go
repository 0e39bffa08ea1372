package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A meeting is a job of Slurm's on a node, as the cases and the last read of Slurm tell of it.
type meeting struct {
	Job      string    `json:"job"`
	Was      string    `json:"was"` // what it has to do with the node
	Node     string    `json:"node"`
	State    string    `json:"state,omitempty"` // of the node now; "" when it is no longer known
	Since    time.Time `json:"since,omitzero"`
	Case     string    `json:"case,omitempty"`
	Why      string    `json:"why,omitempty"`
	Opened   time.Time `json:"opened,omitzero"` // of the case
	Closed   time.Time `json:"closed,omitzero"`
	Owner    string    `json:"owner,omitempty"`
	Next     string    `json:"next,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
}

// unknownJob reports whether the built-in scheduler answered that it has no such job.
func unknownJob(err error) bool {
	var answer *client.Error
	return errors.As(err, &answer) && answer.Status() == http.StatusNotFound
}

// slurmWhy tells of a job that the built-in scheduler does not know by what cases and nodes say of it; notKnown when they say nothing.
func (a *app) slurmWhy(ctx context.Context, c *client.Client, id string, notKnown error) error {
	cases, err := c.Cases(ctx, false)
	if err != nil {
		return err
	}
	nodes, err := c.Nodes(ctx, "")
	if err != nil {
		return err
	}
	met := meetings(id, cases, nodes)
	if len(met) == 0 {
		return fmt.Errorf("%w; no case names it, and Slurm shows it on no node", notKnown)
	}
	return a.emit(met, func() error { return a.showMeetings(met) })
}

// meetings are a job's meetings with nodes: open cases first, the newest first, then nodes it runs on that have none.
func meetings(id string, cases []wire.Case, nodes []wire.Node) (met []meeting) {
	at := map[string]wire.Node{}
	for _, n := range nodes {
		at[n.Name] = n
	}
	seen := map[string]bool{}
	for _, k := range cases {
		m := meeting{Job: id, Node: k.Node, State: at[k.Node].State, Since: at[k.Node].Since, Case: k.ID, Why: caseWhy(k), Opened: k.Opened, Closed: k.Closed, Owner: k.Owner, Next: k.Next, Deadline: k.Deadline}
		switch {
		case slices.Contains(k.Before, id):
			m.Was = "on the node when it failed"
		case slices.Contains(k.After, id):
			m.Was = "among the first on the node after the case"
		default:
			continue
		}
		seen[k.Node] = true
		met = append(met, m)
	}
	slices.SortStableFunc(met, func(x, y meeting) int {
		if x.Closed.IsZero() != y.Closed.IsZero() {
			if x.Closed.IsZero() {
				return -1
			}
			return 1
		}
		return y.Opened.Compare(x.Opened)
	})
	for _, n := range nodes {
		if n.Slurm != nil && slices.Contains(n.Slurm.Jobs, id) && !seen[n.Name] {
			met = append(met, meeting{Job: id, Was: "on the node now", Node: n.Name, State: n.State, Since: n.Since, Case: n.Case, Why: strings.Join(n.Reasons, "; "), Owner: n.Owner, Deadline: n.Deadline})
		}
	}
	return met
}

// caseWhy is a case's first failure in words.
func caseWhy(k wire.Case) string {
	for _, f := range k.Findings {
		if f.Reason != "" {
			return k.Cause + ": " + f.Reason
		}
	}
	return k.Cause
}

func (a *app) showMeetings(met []meeting) error {
	for i, m := range met {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		state, kase, next := "no longer known", "", clean(m.Next)
		if m.State != "" {
			state = clean(m.State) + " since " + a.when(m.Since)
		}
		if m.Case != "" {
			kase = clean(m.Case)
			if !m.Opened.IsZero() {
				kase += ", open since " + a.when(m.Opened)
			}
			if !m.Closed.IsZero() {
				kase = clean(m.Case) + ", closed " + a.when(m.Closed)
			}
		}
		if !m.Deadline.IsZero() && m.Closed.IsZero() {
			next = strings.TrimPrefix(next+"\nby "+a.when(m.Deadline), "\n")
		}
		if err := a.facts(
			[2]string{"Job", clean(m.Job) + " of Slurm, " + m.Was},
			[2]string{"Node", clean(m.Node) + ", " + state},
			[2]string{"Why", clean(m.Why)},
			[2]string{"Case", kase},
			[2]string{"Owner", clean(m.Owner)},
			[2]string{"Next", next},
		); err != nil {
			return err
		}
	}
	return nil
}
