// Package chart draws charts as SVG, to stand in a page or in a file of their own. They load nothing.
package chart

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Colours of a chart, told apart by the colour-blind as well (Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// Colour is the colour of series k; there are six, and they come again.
func Colour(k int) string { return colours[k%len(colours)] }

// A Series is one line of a chart, or one bar of each group. Bars have no X.
type Series struct {
	Name string
	X, Y []float64
}

// Wide is how wide a chart is, Left what is kept for the names of its rows, Right its margin.
const Wide, Left, Right = 860, 64, 12

const (
	high = 260
	foot = 34
	head = 12
)

// Frame begins a chart with its title, and ends it.
func Frame(title string, high int, inside func(*strings.Builder)) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<figure><figcaption>%s</figcaption><svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, html.EscapeString(title), Wide, high, html.EscapeString(title))
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

// Lines draws series over a common x, whose ends are named.
func Lines(title, from, to string, ls []Series, label func(float64) string) string {
	xMost, yMost := 1.0, 0.0
	for _, l := range ls {
		for i := range l.X {
			xMost, yMost = max(xMost, l.X[i]), max(yMost, l.Y[i])
		}
	}
	yMost = top(yMost)
	return Frame(title, high, func(b *strings.Builder) {
		wide, tall := float64(Wide-Left-Right), float64(high-foot-head)
		for i := range 5 {
			y := head + tall*float64(i)/4
			fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`, Left, Wide-Right, y, y, Left-6, y+4, html.EscapeString(label(yMost*float64(4-i)/4)))
		}
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text><text x="%d" y="%d" text-anchor="end">%s</text>`, Left, high-18, html.EscapeString(from), Wide-Right, high-18, html.EscapeString(to))
		for k, l := range ls {
			var path strings.Builder
			for i := range l.X {
				fmt.Fprintf(&path, "%.1f,%.1f ", Left+wide*l.X[i]/xMost, head+tall*(1-l.Y[i]/yMost))
			}
			fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`, Colour(k), strings.TrimSpace(path.String()))
		}
		legend(b, ls, high)
	})
}

func legend(b *strings.Builder, ls []Series, high int) {
	x := Left
	for k, l := range ls {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`, x, high-12, Colour(k), x+14, high-3, html.EscapeString(l.Name))
		x += 22 + 6*len(l.Name)
	}
}

// Bars draws groups of bars: one group for each name, one bar in it for each series.
func Bars(title string, groups []string, ls []Series, label func(float64) string) string {
	yMost := 0.0
	for _, l := range ls {
		for _, y := range l.Y {
			yMost = max(yMost, y)
		}
	}
	yMost = top(yMost)
	return Frame(title, high, func(b *strings.Builder) {
		wide, tall := float64(Wide-Left-Right), float64(high-foot-2*head)
		for i := range 5 {
			y := head + tall*float64(i)/4
			fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`, Left, Wide-Right, y, y, Left-6, y+4, html.EscapeString(label(yMost*float64(4-i)/4)))
		}
		group := wide / float64(max(1, len(groups)))
		bar := group * 0.8 / float64(max(1, len(ls)))
		for g, name := range groups {
			x := Left + group*float64(g)
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, x+group/2, head+tall+14, html.EscapeString(name))
			for k, l := range ls {
				h := tall * l.Y[g] / yMost
				fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s, %s: %s</title></rect>`, x+group*0.1+bar*float64(k), head+tall-h, max(1, bar-2), h, Colour(k), html.EscapeString(l.Name), html.EscapeString(name), html.EscapeString(label(l.Y[g])))
			}
		}
		legend(b, ls, high)
	})
}

// LogLog draws series over a common x, both by their logarithms, with a mark at each point: a straight line at 45 degrees
// grows in proportion. x and y above 0.
func LogLog(title string, ls []Series, x, y func(float64) string) string {
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, l := range ls {
		for i := range l.X {
			for k, v := range []float64{math.Log10(l.X[i]), math.Log10(l.Y[i])} {
				lo[k], hi[k] = min(lo[k], math.Floor(v)), max(hi[k], math.Ceil(v))
			}
		}
	}
	for k := range lo {
		hi[k] = max(hi[k], lo[k]+1)
	}
	const tallest = 420
	return Frame(title, tallest, func(b *strings.Builder) {
		wide, tall := float64(Wide-Left-Right), float64(tallest-foot-2*head)
		place := func(u, v float64) (float64, float64) {
			return Left + wide*(math.Log10(u)-lo[0])/(hi[0]-lo[0]), head + tall*(1-(math.Log10(v)-lo[1])/(hi[1]-lo[1]))
		}
		for d := lo[1]; d <= hi[1]; d++ {
			_, at := place(1, math.Pow(10, d))
			fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`, Left, Wide-Right, at, at, Left-6, at+4, html.EscapeString(y(math.Pow(10, d))))
		}
		for d := lo[0]; d <= hi[0]; d++ {
			at, _ := place(math.Pow(10, d), 1)
			anchor := "middle"
			if d == hi[0] {
				anchor = "end"
			}
			fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%.1f"/><text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, at, at, head, head+tall, at, head+tall+14, anchor, html.EscapeString(x(math.Pow(10, d))))
		}
		for k, l := range ls {
			var path strings.Builder
			for i := range l.X {
				u, v := place(l.X[i], l.Y[i])
				fmt.Fprintf(&path, "%.1f,%.1f ", u, v)
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s, %s: %s</title></circle>`, u, v, Colour(k), html.EscapeString(l.Name), html.EscapeString(x(l.X[i])), html.EscapeString(y(l.Y[i])))
			}
			fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`, Colour(k), strings.TrimSpace(path.String()))
		}
		legend(b, ls, tallest)
	})
}

// Style is what a page needs for its charts.
const Style = `text{font:11px system-ui,sans-serif;fill:#555}.grid{stroke:#ddd}.died{opacity:.35}`

// WriteFile writes one chart as an SVG file.
func WriteFile(w io.Writer, figure string) error {
	_, svg, _ := strings.Cut(figure, "<svg ")
	svg, _, _ = strings.Cut(svg, "</svg>")
	open, inside, _ := strings.Cut(svg, ">")
	_, err := fmt.Fprintf(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" %s><style>%s</style><rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>%s</svg>\n", open, Style, inside)
	return err
}
