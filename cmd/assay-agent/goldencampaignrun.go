package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/golden/campaign"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// progress says on stderr, every ten seconds, how far it is and when it will be done.
type progress struct {
	mu          sync.Mutex
	w           io.Writer
	what        string
	begun, said time.Time
	done, all   int
}

func newProgress(w io.Writer, what string, all int) *progress {
	now := time.Now()
	return &progress{w: w, what: what, begun: now, said: now, all: all}
}

func (p *progress) one() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if now := time.Now(); now.Sub(p.said) > 10*time.Second {
		p.said = now
		left := time.Duration(float64(now.Sub(p.begun)) / float64(p.done) * float64(p.all-p.done))
		fmt.Fprintf(p.w, "%d of %d %s, about %s left\n", p.done, p.all, p.what, left.Round(time.Second))
	}
}

func runCampaign(c *cobra.Command, faults []ptxvm.Fault, o campaign.Options, file string) ([]campaign.Line, error) {
	r, err := campaign.New(o)
	if err != nil {
		return nil, err
	}
	keep := func(campaign.Line) error { return nil }
	if file != "" {
		f, err := os.Create(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // each line's own error is looked at
		enc, mu := json.NewEncoder(f), sync.Mutex{}
		keep = func(l campaign.Line) error {
			mu.Lock()
			defer mu.Unlock()
			return enc.Encode(l)
		}
	}
	lines, errs := make([]campaign.Line, len(faults)), make([]error, len(faults))
	p := newProgress(c.ErrOrStderr(), "faults", len(faults))
	each(len(faults), func(i int) {
		if c.Context().Err() != nil {
			return
		}
		if lines[i], errs[i] = r.Run(faults[i]); errs[i] == nil {
			errs[i] = keep(lines[i])
		}
		p.one()
	})
	if err := c.Context().Err(); err != nil {
		return nil, &exitError{exitUnknown, err}
	}
	return lines, errors.Join(errs...)
}

func printCampaign(w io.Writer, lines []campaign.Line, lost, others bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "KIND\tDETECTED\tMISSED\tSHARE\t95 % FROM\tTO\tLOCATED\tDUE\tBENIGN\tSEEN, BENIGN\tNOT MODELLED\t")
	for _, s := range campaign.Summarise(lines) {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%.3f\t%.3f\t%.3f\t%d\t%d\t%d\t%d\t%d\t\n", s.Stratum, s.Detected, s.Missed, s.Rate, s.Low, s.High, s.Located, s.DUE, s.Idle, s.Extra, s.NotModelled)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if others {
		fmt.Fprintln(tw, "TOOL\tSEEN\tOF\tSHARE\t95 % FROM\tTO\tSEEN AND MISSED BY THE SUITE\t")
		for _, v := range campaign.Compare(lines) {
			fmt.Fprintf(tw, "%s\t%d\t%d\t%.3f\t%.3f\t%.3f\t%d\t\n", v.Tool, v.Seen.Found, v.Seen.Of, v.Seen.Rate, v.Seen.Low, v.Seen.High, v.Wins)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if !lost {
		return nil
	}
	by := campaign.Lost(lines)
	var names []string
	for id := range by {
		names = append(names, id)
	}
	slices.Sort(names)
	for _, id := range names {
		if _, err := fmt.Fprintf(w, "without %s the suite loses %d faults\n", id, by[id]); err != nil {
			return err
		}
	}
	return nil
}

// runClean counts false positives.
func runClean(c *cobra.Command, o campaign.Options, runs int, seed uint64, asJSON bool) error {
	r, err := campaign.New(o)
	if err != nil {
		return err
	}
	begun := time.Now()
	out, errs := make([]campaign.CleanRun, runs), make([]error, runs)
	p := newProgress(c.ErrOrStderr(), "clean runs", runs)
	each(runs, func(i int) {
		if c.Context().Err() != nil {
			return
		}
		out[i], errs[i] = r.Clean(seed + uint64(i))
		p.one()
	})
	if err := errors.Join(append(errs, c.Context().Err())...); err != nil {
		return err
	}
	sum := struct {
		Runs    int      `json:"runs"`
		Kernels int      `json:"kernels"`
		Blocks  int      `json:"blocks"`
		Skipped int      `json:"blocks_not_attributed"`
		Wrong   []string `json:"false_positives"`
		Seconds float64  `json:"duration_seconds"`
	}{Runs: runs, Kernels: len(o.Kernels), Wrong: []string{}, Seconds: time.Since(begun).Seconds()}
	for _, r := range out {
		sum.Blocks, sum.Skipped = sum.Blocks+r.Blocks, sum.Skipped+r.Skipped
		if r.Wrong != "" {
			sum.Wrong = append(sum.Wrong, r.Wrong)
		}
	}
	if asJSON {
		err = json.NewEncoder(c.OutOrStdout()).Encode(sum)
	} else {
		_, err = fmt.Fprintf(c.OutOrStdout(), "%d clean runs of %d kernels from seed %d: %d false positives; %d blocks compared, %d not attributed; %.0f s\n", runs, sum.Kernels, seed, len(sum.Wrong), sum.Blocks, sum.Skipped, sum.Seconds)
		for _, w := range sum.Wrong {
			fmt.Fprintln(c.OutOrStdout(), w)
		}
	}
	if err == nil && len(sum.Wrong) > 0 {
		err = fmt.Errorf("%d of %d clean runs were not clean", len(sum.Wrong), runs)
	}
	return err
}

// runTriggers says how many operand bits a fault may need.
func runTriggers(c *cobra.Command, f gateFlags, o campaign.Options, seed uint64, asJSON bool) error {
	r, err := campaign.New(o)
	if err != nil {
		return err
	}
	for _, at := range f.lanes {
		t, err := r.Trace(at/32, at%32, f.most, func(name string) {
			fmt.Fprintf(c.ErrOrStderr(), "partition %d lane %d: trace of %s\n", at/32, at%32, name)
		})
		if err != nil {
			return err
		}
		lines := t.Triggers(100, seed)
		if asJSON {
			enc := json.NewEncoder(c.OutOrStdout())
			for _, l := range lines {
				if err := enc.Encode(l); err != nil {
					return err
				}
			}
			continue
		}
		tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(tw, "UNIT\tOPERATIONS\tW50\tGOAL\t\tSHOWN AT W=0\t4\t8\t16\t32\t")
		for _, l := range lines {
			met := "met"
			if l.W50 < l.Goal {
				met = "NOT met"
			}
			fmt.Fprintf(tw, "%s\t%d\t%.1f\t%.1f\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", l.Unit, l.Operations, l.W50, l.Goal, met, l.Shares[0], l.Shares[4], l.Shares[8], l.Shares[16], l.Shares[32])
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}
