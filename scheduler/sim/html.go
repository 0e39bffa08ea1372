package sim

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/assay-gpu/assay/scheduler/sim/chart"
)

// page is what a report begins with. It loads nothing: the file can be mailed.
const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>assay sim: %s</title>
<style>
body{font:15px/1.45 system-ui,sans-serif;max-width:900px;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h1{font-size:1.4rem}figure{margin:1.6rem 0}figcaption{font-weight:600;margin-bottom:.3rem}svg{width:100%%;height:auto}
` + chart.Style + `
pre{overflow-x:auto;background:#f6f6f6;padding:1rem;font-size:13px}
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}text{fill:#aaa}.grid{stroke:#333}pre{background:#202020}}
</style>
<h1>assay sim: %s</h1>
`

// WriteHTML writes runs of one trace as one page with charts.
func WriteHTML(w io.Writer, trace string, runs []*Result) error {
	b := bufio.NewWriter(w)
	name := html.EscapeString(trace)
	fmt.Fprintf(b, page, name, name)
	var table strings.Builder
	if err := WriteTable(&table, runs); err != nil {
		return err
	}
	fmt.Fprintf(b, "<pre>%s</pre>\n", html.EscapeString(table.String()))
	series := func(value func(*Result, Point) float64) []chart.Series {
		var ls []chart.Series
		for _, x := range runs {
			l := chart.Series{Name: x.Name()}
			for _, p := range x.Series {
				l.X, l.Y = append(l.X, float64(p.At)), append(l.Y, value(x, p))
			}
			ls = append(ls, l)
		}
		return ls
	}
	end := span(runs[0].Window)
	share := func(f float64) string { return fmt.Sprintf("%.0f %%", f*100) }
	b.WriteString(chart.Lines("GPUs in use", "0", end, series(func(x *Result, p Point) float64 { return p.Used / float64(x.GPUs) }), share))
	b.WriteString(chart.Lines("Jobs that wait", "0", end, series(func(_ *Result, p Point) float64 { return float64(p.Pending) }), func(f float64) string { return fmt.Sprintf("%.0f", f) }))
	b.WriteString(chart.Lines("GPUs out of service", "0", end, series(func(x *Result, p Point) float64 { return p.Down / float64(x.GPUs) }), func(f float64) string { return fmt.Sprintf("%.1f %%", f*100) }))
	var groups []string
	for _, c := range runs[0].Classes {
		groups = append(groups, c.Name)
	}
	by := func(value func(Class) float64) []chart.Series {
		var ls []chart.Series
		for _, x := range runs {
			l := chart.Series{Name: x.Name()}
			for _, g := range groups {
				l.Y = append(l.Y, value(find(x, g)))
			}
			ls = append(ls, l)
		}
		return ls
	}
	b.WriteString(chart.Bars("Mean wait by size of job, hours", groups, by(func(c Class) float64 { return c.MeanWait / 3600 }), number))
	b.WriteString(chart.Bars("Bounded slowdown by size of job, mean", groups, by(func(c Class) float64 { return c.Slowdown }), number))
	whole := func(value func(*Result) float64) []chart.Series {
		var ls []chart.Series
		for _, x := range runs {
			ls = append(ls, chart.Series{Name: x.Name(), Y: []float64{value(x)}})
		}
		return ls
	}
	b.WriteString(chart.Bars("Idle while a job waits: fragmentation and order", []string{"of all GPU time"}, whole(func(x *Result) float64 { return x.IdleWaiting }), func(f float64) string { return fmt.Sprintf("%.1f %%", f*100) }))
	b.WriteString(chart.Lines("Fragmentation: free GPUs on nodes that are partly in use", "0", end, series(func(x *Result, p Point) float64 { return p.Split / float64(x.GPUs) }), func(f float64) string { return fmt.Sprintf("%.1f %%", f*100) }))
	if runs[0].Gangs > 0 {
		leaves := make([]chart.Series, len(runs))
		for i, x := range runs {
			leaves[i] = chart.Series{Name: x.Name(), Y: []float64{x.Leaves, x.Reachable}}
		}
		b.WriteString(chart.Bars("Leaf switches used, over the fewest possible", []string{"on an empty fleet", "among the nodes that were free"}, leaves, number))
	}
	lost := make([]chart.Series, len(runs))
	for i, x := range runs {
		lost[i] = chart.Series{Name: x.Name(), Y: []float64{x.LostHours, x.WrongHours}}
	}
	b.WriteString(chart.Bars("Work that came to nothing, GPU hours", []string{"lost to failures and restarts", "computed on nodes that compute wrongly"}, lost, func(f float64) string { return fmt.Sprintf("%.0f", f) }))
	b.WriteString(chart.Bars("Goodput: useful and right, of the GPU time used", []string{"all jobs"}, whole(func(x *Result) float64 { return x.Goodput }), share))
	for _, x := range runs {
		until := int64(1)
		for _, s := range x.Spans {
			until = max(until, s.To)
		}
		b.WriteString(gantt("Who was where: the first nodes, "+x.Name()+" (faint: died)", x.Rows, x.Spans, min(until, max(1, x.Window))))
	}
	b.WriteString("</html>\n")
	return b.Flush()
}

func number(f float64) string { return fmt.Sprintf("%.3g", f) }

// WriteFillingHTML writes a filling as one page.
func WriteFillingHTML(w io.Writer, trace string, f *Filling) error {
	b := bufio.NewWriter(w)
	name := html.EscapeString(trace)
	fmt.Fprintf(b, page, name, name)
	var text strings.Builder
	if err := WriteFilling(&text, f); err != nil {
		return err
	}
	fmt.Fprintf(b, "<pre>%s</pre>\n", html.EscapeString(text.String()))
	given, ideal := chart.Series{Name: "allocated"}, chart.Series{Name: "were nothing wasted"}
	for _, s := range f.Steps {
		given.X, given.Y = append(given.X, s.Asked), append(given.Y, s.Allocated)
		ideal.X, ideal.Y = append(ideal.X, s.Asked), append(ideal.Y, min(1, s.Asked))
	}
	b.WriteString(chart.Lines("GPUs allocated, over GPUs asked for", "nothing asked", percent(f.Asked)+" asked", []chart.Series{given, ideal}, func(v float64) string { return fmt.Sprintf("%.0f %%", v*100) }))
	b.WriteString("</html>\n")
	return b.Flush()
}
