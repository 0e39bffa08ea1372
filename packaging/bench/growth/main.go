// Growth reads what `go test -bench Growth` prints and draws it: processor time of an operation against nodes and against the
// queue, both by their logarithms. It prints the same as a table, with the power by which each line grows.
//
//	growth [DIR] < OUTPUT     writes growth-nodes.svg and growth-queue.svg into DIR
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/scheduler/sim/chart"
)

func main() {
	dir := ""
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := draw(os.Stdin, os.Stdout, dir); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// A plot is one chart: what grows along its x, and what tells its lines apart.
type plot struct {
	file, title, unit string
	line              *regexp.Regexp // of a benchmark's name: the first group is x, the others name the line
	name              func(groups []string) string
	series            []chart.Series
}

func plots() []*plot {
	return []*plot{
		{file: "growth-nodes.svg", title: "Processor time of a placement, against nodes", unit: "nodes",
			line: regexp.MustCompile(`^BenchmarkGrowth/nodes=(\d+)/(gang=\d+|refused)(?:-\d+)?$`),
			name: func(g []string) string { return strings.Replace(g[2], "gang=", "gang of ", 1) }},
		{file: "growth-queue.svg", title: "Processor time of an event and of a plan, against jobs pending", unit: "jobs pending",
			line: regexp.MustCompile(`^BenchmarkGrowth/nodes=(\d+)/pending=(\d+)/(event|plan)(?:-\d+)?$`),
			name: func(g []string) string { return g[3] + ", " + g[1] + " nodes" }},
	}
}

func draw(in io.Reader, out io.Writer, dir string) error {
	all := plots()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		at := slices.Index(f, "cpu-ns/op")
		if at < 2 {
			continue
		}
		took, err := strconv.ParseFloat(f[at-1], 64)
		if err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		for _, p := range all {
			if g := p.line.FindStringSubmatch(f[0]); g != nil {
				x := g[1]
				if p.unit != "nodes" {
					x = g[2]
				}
				n, err := strconv.ParseFloat(x, 64)
				if err != nil {
					return fmt.Errorf("%q: %w", lines.Text(), err)
				}
				p.add(p.name(g), n, took)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	drawn := 0
	for _, p := range all {
		if len(p.series) == 0 {
			continue
		}
		drawn++
		p.table(out)
		if dir == "" {
			continue
		}
		file, err := os.Create(filepath.Join(dir, p.file))
		if err != nil {
			return err
		}
		count := func(v float64) string { return fmt.Sprintf("%.0f", v) }
		if err := cmp.Or(chart.WriteFile(file, chart.LogLog(p.title, p.series, count, span)), file.Close()); err != nil {
			return err
		}
	}
	if drawn == 0 {
		return fmt.Errorf("no line of BenchmarkGrowth with cpu-ns/op in what was read")
	}
	return nil
}

func (p *plot) add(name string, x, y float64) {
	i := slices.IndexFunc(p.series, func(s chart.Series) bool { return s.Name == name })
	if i < 0 {
		i = len(p.series)
		p.series = append(p.series, chart.Series{Name: name})
	}
	p.series[i].X, p.series[i].Y = append(p.series[i].X, x), append(p.series[i].Y, y)
}

// table prints a plot's figures, a line of the plot in each row, and the power of x by which it grows from its first to its
// last point and over the last step: 1 is in proportion.
func (p *plot) table(w io.Writer) {
	fmt.Fprintf(w, "\n| %s |", p.unit)
	for _, x := range p.series[0].X {
		fmt.Fprintf(w, " %.0f |", x)
	}
	fmt.Fprintf(w, " grows by the power | last step |\n|%s\n", strings.Repeat("---|", len(p.series[0].X)+3))
	for _, s := range p.series {
		fmt.Fprintf(w, "| %s |", s.Name)
		for _, y := range s.Y {
			fmt.Fprintf(w, " %s |", span(y))
		}
		last := len(s.X) - 1
		fmt.Fprintf(w, " %.2f | %.2f |\n", power(s, 0, last), power(s, max(0, last-1), last))
	}
}

func power(s chart.Series, a, b int) float64 {
	if s.X[a] == s.X[b] {
		return 0
	}
	return math.Log(s.Y[b]/s.Y[a]) / math.Log(s.X[b]/s.X[a])
}

// span writes nanoseconds with two digits.
func span(ns float64) string {
	for _, u := range []struct {
		n    time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}} {
		if ns >= float64(u.n) {
			v := ns / float64(u.n)
			digits := max(0, 1-int(math.Floor(math.Log10(v))))
			return strconv.FormatFloat(v, 'f', digits, 64) + " " + u.name
		}
	}
	return fmt.Sprintf("%.0f ns", ns)
}
