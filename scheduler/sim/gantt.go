package sim

import (
	"fmt"
	"html"
	"strings"

	"github.com/assay-gpu/assay/scheduler/sim/chart"
)

// gantt draws who was on which node when.
func gantt(title string, rows []string, spans []Span, until int64) string {
	const row = 11
	high := row*len(rows) + 40
	return chart.Frame(title, high, func(b *strings.Builder) {
		wide := float64(chart.Wide - chart.Left - chart.Right)
		for i, name := range rows {
			if i%4 == 0 {
				fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, chart.Left-6, 10+row*i+8, html.EscapeString(name))
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
			x := chart.Left + wide*float64(s.From)/float64(until)
			w := max(0.5, wide*float64(min(s.To, until)-s.From)/float64(until))
			fmt.Fprintf(b, `<rect%s x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>job %d, %s</title></rect>`, class, x, 10+row*int(s.Node), w, row-2, chart.Colour(int(s.Job)), s.Job, span(s.To-s.From))
		}
		fmt.Fprintf(b, `<text x="%d" y="%d">0</text><text x="%d" y="%d" text-anchor="end">%s</text>`, chart.Left, high-12, chart.Wide-chart.Right, high-12, span(until))
	})
}
