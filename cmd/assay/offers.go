package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// offers is what the control plane knows for the words of usage lines.
var offers = map[string]offer{
	"HOSTLIST": offerNodes, "NODE": offerNodes, "CASE": offerOpenCases, "TICKET": offerTickets, "SERIAL": offerParts, "JOB": offerOpenJobs,
}

func offerNodes(ctx context.Context, c *client.Client) ([]string, error) {
	nodes, err := c.Nodes(ctx, "")
	var words []string
	for _, n := range nodes {
		words = append(words, n.Name+"\t"+strings.TrimSuffix(n.State+": "+strings.Join(n.Reasons, "; "), ": "))
	}
	return words, err
}

// offerOfNodes offers what nodes have something of, each once.
func offerOfNodes(of func(wire.Node) []string) offer {
	return func(ctx context.Context, c *client.Client) ([]string, error) {
		nodes, err := c.Nodes(ctx, "")
		var words []string
		for _, n := range nodes {
			for _, w := range of(n) {
				if w != "" {
					words = append(words, w)
				}
			}
		}
		slices.Sort(words)
		return slices.Compact(words), err
	}
}

func offerOpenCases(ctx context.Context, c *client.Client) ([]string, error) {
	return caseWords(c.Cases(ctx, true))
}

func offerCases(ctx context.Context, c *client.Client) ([]string, error) {
	return caseWords(c.Cases(ctx, false))
}

func caseWords(cs []wire.Case, err error) ([]string, error) {
	var words []string
	for _, k := range cs {
		about := k.Node + " " + k.Cause
		if !k.Closed.IsZero() {
			about += ", closed"
		}
		words = append(words, k.ID+"\t"+about)
	}
	return words, err
}

func offerTickets(ctx context.Context, c *client.Client) ([]string, error) {
	ts, err := c.Tickets(ctx, false)
	var words []string
	for _, t := range ts {
		words = append(words, fmt.Sprintf("%s\t%s %s, %s", t.ID, t.Node, t.Cause, t.State))
	}
	return words, err
}

func offerParts(ctx context.Context, c *client.Client) ([]string, error) {
	ps, err := c.Parts(ctx)
	var words []string
	for _, p := range ps {
		about := p.Product
		if n := len(p.Places); n > 0 {
			about = strings.TrimSpace(about + " " + p.Places[n-1].Node)
		}
		words = append(words, p.Serial+"\t"+about)
	}
	return words, err
}

func offerOpenJobs(ctx context.Context, c *client.Client) ([]string, error) {
	return jobWords(c.Jobs(ctx, false))
}

func offerJobs(ctx context.Context, c *client.Client) ([]string, error) {
	return jobWords(c.Jobs(ctx, true))
}

func jobWords(js []wire.Job, err error) ([]string, error) {
	var words []string
	for _, j := range js {
		words = append(words, fmt.Sprintf("%s\t%s of %s, %s", jobName(j), j.Name, j.User, j.State))
	}
	return words, err
}

// offerRules offers the names of one kind of the scheduler's records.
func offerRules(names func(rules.File) []string) offer {
	return func(ctx context.Context, c *client.Client) ([]string, error) {
		f, err := c.Rules(ctx, true)
		return names(f), err
	}
}

var (
	offerAccounts = offerRules(func(f rules.File) []string {
		return namesOf(f.Accounts, func(x rules.Account) string { return x.Name })
	})
	offerQOS        = offerRules(func(f rules.File) []string { return namesOf(f.QOS, func(x rules.QOS) string { return x.Name }) })
	offerPartitions = offerRules(func(f rules.File) []string {
		return namesOf(f.Partitions, func(x rules.Partition) string { return x.Name })
	})
	offerReservations = offerRules(func(f rules.File) []string {
		return namesOf(f.Reservations, func(x rules.Reservation) string { return x.Name })
	})
)

func levelNames() (names []string) {
	for l := checks.QuickMIG; l <= checks.Intake; l++ {
		names = append(names, l.String())
	}
	return names
}

func namesOf[T any](list []T, of func(T) string) (names []string) {
	for _, x := range list {
		names = append(names, of(x))
	}
	return names
}
