package sim

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Name says what a run was.
func (x *Result) Name() string {
	if x.Gating {
		return x.Policy + ", gated"
	}
	return x.Policy
}

// WriteTable writes runs of one trace beside each other, for people.
func WriteTable(w io.Writer, runs []*Result) error {
	b := bufio.NewWriter(w)
	first := runs[0]
	fmt.Fprintf(b, "%d jobs on %d nodes with %d GPUs, arriving over %s\n", first.Jobs-first.Impossible, first.Nodes, first.GPUs, span(first.Window))
	writeLeftOut(b, first.Skipped, first.Unreadable)
	if first.Impossible > 0 {
		fmt.Fprintf(b, "left out: %d, larger than the fleet\n", first.Impossible)
	}
	fmt.Fprintln(b)
	tab := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	row := func(name string, value func(*Result) string) {
		fmt.Fprint(tab, name)
		for _, x := range runs {
			fmt.Fprint(tab, "\t", value(x))
		}
		fmt.Fprintln(tab)
	}
	row("", func(x *Result) string { return strings.ToUpper(x.Name()) })
	row("completed", func(x *Result) string { return fmt.Sprint(x.Completed) })
	row("stopped by their limit", func(x *Result) string { return fmt.Sprint(x.TimedOut) })
	row("given up after too many deaths", func(x *Result) string { return fmt.Sprint(x.GivenUp) })
	row("GPU time in use", func(x *Result) string { return percent(x.Utilisation) })
	row("GPU time idle while a job waits", func(x *Result) string { return percent(x.IdleWaiting) })
	row("GPU time out of service", func(x *Result) string { return percent(x.Down) })
	row("goodput, of the time used", func(x *Result) string { return percent(x.Goodput) })
	row("lost to failures, GPU hours", func(x *Result) string { return fmt.Sprintf("%.0f", x.LostHours) })
	row("computed wrongly, GPU hours", func(x *Result) string { return fmt.Sprintf("%.0f", x.WrongHours) })
	row("nodes sent to repair", func(x *Result) string { return fmt.Sprint(x.Faults) })
	row("stopped by a screen", func(x *Result) string { return fmt.Sprint(x.ScreenedOut) })
	row("restarts", func(x *Result) string { return fmt.Sprint(x.Restarts) })
	row("free GPUs on partly used nodes", func(x *Result) string { return percent(x.Split) })
	if first.Gangs > 0 {
		row("leaves, over fewest on an empty fleet", func(x *Result) string { return fmt.Sprintf("%.3f", x.Leaves) })
		row("leaves, over fewest among nodes then free", func(x *Result) string { return fmt.Sprintf("%.3f", x.Reachable) })
	}
	row("last end", func(x *Result) string { return span(x.Makespan) })
	row("bounded slowdown, mean", func(x *Result) string { return fmt.Sprintf("%.2f", x.All.Slowdown) })
	for _, c := range classes {
		if class := find(first, c.name); class.Jobs > 0 {
			row(fmt.Sprintf("wait of %d jobs of %s, mean/p95", class.Jobs, c.name), func(x *Result) string {
				y := find(x, c.name)
				return span(int64(y.MeanWait)) + " / " + span(int64(y.P95Wait))
			})
		}
	}
	row("wait of all, mean/p95", func(x *Result) string { return span(int64(x.All.MeanWait)) + " / " + span(int64(x.All.P95Wait)) })
	if err := tab.Flush(); err != nil {
		return err
	}
	return b.Flush()
}

// writeLeftOut says what of a trace was left out, and of its first faults where and what they are.
func writeLeftOut(b io.Writer, skipped map[string]int, faults []Fault) {
	for _, why := range sorted(skipped) {
		fmt.Fprintf(b, "left out: %d, %s\n", skipped[why], why)
	}
	for _, f := range faults {
		fmt.Fprintf(b, "  %s\n", f)
	}
	if n := skipped[unreadable] - len(faults); n > 0 {
		fmt.Fprintf(b, "  and %d more\n", n)
	}
}

func find(x *Result, name string) Class {
	i := slices.IndexFunc(x.Classes, func(c Class) bool { return c.Name == name })
	if i < 0 {
		return Class{}
	}
	return x.Classes[i]
}

func sorted(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func percent(f float64) string { return fmt.Sprintf("%.2f %%", f*100) }

// span writes seconds by their two greatest units.
func span(s int64) string {
	for _, u := range []struct {
		n, m     int64
		big, low string
	}{{86400, 3600, "d", "h"}, {3600, 60, "h", "m"}, {60, 1, "m", "s"}} {
		if s >= u.n {
			return fmt.Sprintf("%d%s%d%s", s/u.n, u.big, s%u.n/u.m, u.low)
		}
	}
	return fmt.Sprintf("%ds", s)
}

// WriteCSV writes one line for each run and size of job.
func WriteCSV(w io.Writer, runs []*Result) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "policy,gating,seed,class,jobs,mean_wait_s,p95_wait_s,max_wait_s,bounded_slowdown,utilisation,idle_while_waiting,down,goodput,lost_gpu_hours,wrong_gpu_hours,leaves_over_bound,leaves_over_reachable,split")
	for _, x := range runs {
		for _, c := range append(slices.Clone(x.Classes), x.All) {
			fmt.Fprintf(b, "%s,%v,%d,%s,%d,%.1f,%.1f,%.1f,%.4f,%.6f,%.6f,%.6f,%.6f,%.1f,%.1f,%.4f,%.4f,%.6f\n", x.Policy, x.Gating, x.Seed, c.Name, c.Jobs, c.MeanWait,
				c.P95Wait, c.MaxWait, c.Slowdown, x.Utilisation, x.IdleWaiting, x.Down, x.Goodput, x.LostHours, x.WrongHours, x.Leaves, x.Reachable, x.Split)
		}
	}
	return b.Flush()
}

// WriteFilling writes a filling for people.
func WriteFilling(w io.Writer, f *Filling) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%d jobs in their order on %d nodes with %d GPUs; none ends\n", f.Jobs, f.Nodes, f.GPUs)
	writeLeftOut(b, f.Skipped, f.Faults)
	fmt.Fprintf(b, "\nplaced     %d, refused %d\nasked      %s of the GPUs\nallocated  %s of the GPUs\n", f.Placed, f.Refused, percent(f.Asked), percent(f.Allocated))
	if f.First >= 0 {
		fmt.Fprintf(b, "refused    first when %s were allocated\n", percent(f.First))
	}
	return b.Flush()
}
