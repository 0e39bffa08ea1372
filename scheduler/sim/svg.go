package sim

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Colours of a chart, told apart by the colour-blind as well (Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// A line is one series of a chart.
type line struct {
	name string
	x, y []float64
}

const chartWide, chartHigh, chartLeft, chartFoot = 860, 260, 64, 34

// frame begins a chart with its title, and ends it.
func frame(title string, high int, inside func(*strings.Builder)) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<figure><figcaption>%s</figcaption><svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, html.EscapeString(title), chartWide, high, html.EscapeString(title))
	inside(&b)
	b.WriteString("</svg></figure>\n")
	return b.String()
}

// top is a round number not below v.
func top(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*unit >= v {
			return m * unit
		}
	}
	return 10 * unit
}

// lines draws series over a common x, whose ends are named.
func lines(title, from, to string, ls []line, label func(float64) string) string {
	xMost, yMost := 1.0, 0.0
	for _, l := range ls {
		for i := range l.x {
			xMost, yMost = max(xMost, l.x[i]), max(yMost, l.y[i])
		}
	}
	yMost = top(yMost)
	return frame(title, chartHigh, func(b *strings.Builder) {
		wide, high := float64(chartWide-chartLeft-12), float64(chartHigh-chartFoot-12)
		for i := range 5 {
			y := 12 + high*float64(i)/4
			fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`, chartLeft, chartWide-12, y, y, chartLeft-6, y+4, html.EscapeString(label(yMost*float64(4-i)/4)))
		}
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text><text x="%d" y="%d" text-anchor="end">%s</text>`, chartLeft, chartHigh-18, html.EscapeString(from), chartWide-12, chartHigh-18, html.EscapeString(to))
		for k, l := range ls {
			var path strings.Builder
			for i := range l.x {
				fmt.Fprintf(&path, "%.1f,%.1f ", chartLeft+wide*l.x[i]/xMost, 12+high*(1-l.y[i]/yMost))
			}
			fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`, colours[k%len(colours)], strings.TrimSpace(path.String()))
		}
		legend(b, ls)
	})
}

func legend(b *strings.Builder, ls []line) {
	x := chartLeft
	for k, l := range ls {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`, x, chartHigh-12, colours[k%len(colours)], x+14, chartHigh-3, html.EscapeString(l.name))
		x += 30 + 7*len(l.name)
	}
}

// bars draws groups of bars: one group for each name, one bar in it for each series.
func bars(title string, groups []string, ls []line, label func(float64) string) string {
	yMost := 0.0
	for _, l := range ls {
		for _, y := range l.y {
			yMost = max(yMost, y)
		}
	}
	yMost = top(yMost)
	return frame(title, chartHigh, func(b *strings.Builder) {
		wide, high := float64(chartWide-chartLeft-12), float64(chartHigh-chartFoot-24)
		for i := range 5 {
			y := 12 + high*float64(i)/4
			fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`, chartLeft, chartWide-12, y, y, chartLeft-6, y+4, html.EscapeString(label(yMost*float64(4-i)/4)))
		}
		group := wide / float64(max(1, len(groups)))
		bar := group * 0.8 / float64(max(1, len(ls)))
		for g, name := range groups {
			x := chartLeft + group*float64(g)
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x+group/2, 12+high+14, html.EscapeString(name))
			for k, l := range ls {
				h := high * l.y[g] / yMost
				fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s, %s: %s</title></rect>`, x+group*0.1+bar*float64(k), 12+high-h, max(1, bar-2), h, colours[k%len(colours)], html.EscapeString(l.name), html.EscapeString(name), html.EscapeString(label(l.y[g])))
			}
		}
		legend(b, ls)
	})
}

// gantt draws who was on which node when.
func gantt(title string, rows []string, spans []Span, until int64) string {
	const row = 11
	high := row*len(rows) + 40
	return frame(title, high, func(b *strings.Builder) {
		wide := float64(chartWide - chartLeft - 12)
		for i, name := range rows {
			if i%4 == 0 {
				fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, chartLeft-6, 10+row*i+8, html.EscapeString(name))
			}
		}
		for _, s := range spans {
			if s.From >= until {
				continue
			}
			class := ""
			if s.Died {
				class = ` class="died"`
			}
			x := chartLeft + wide*float64(s.From)/float64(until)
			w := max(0.5, wide*float64(min(s.To, until)-s.From)/float64(until))
			fmt.Fprintf(b, `<rect%s x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>job %d, %s</title></rect>`, class, x, 10+row*int(s.Node), w, row-2, colours[int(s.Job)%len(colours)], s.Job, span(s.To-s.From))
		}
		fmt.Fprintf(b, `<text x="%d" y="%d">0</text><text x="%d" y="%d" text-anchor="end">%s</text>`, chartLeft, high-12, chartWide-12, high-12, span(until))
	})
}
