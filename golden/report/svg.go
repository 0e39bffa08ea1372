package report

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/golden"
)

// columns of the grid of SMs. Neighbours in it are neighbours by number, not on the die: which SMs share a TPC or GPC
// differs from one GPU to the next, as some are switched off.
const columns = 16

// An SMState is what a run has shown of one SM.
type SMState struct {
	SM        int
	Verified  int      // stages whose every word was right there, the canary seen
	Stages    int      // that apply to the GPU
	Wrong     []string // kernels that gave a wrong result
	Heat      float64  // the largest share of a block's words that was wrong, 0 to 1
	Partition int      // in which a fault was located, else -1
}

func (s SMState) letter() byte {
	switch {
	case len(s.Wrong) > 0:
		return 'x'
	case s.Stages > 0 && s.Verified == s.Stages:
		return '.'
	}
	return '-'
}

// maxSMs bounds the grid: a result may come from any file.
const maxSMs = 1024

// SMs gives the state of every SM, in order.
func SMs(r golden.Result) []SMState {
	out := make([]SMState, min(max(r.GPU.SMs, 0), maxSMs))
	for i := range out {
		out[i] = SMState{SM: i, Partition: -1}
	}
	for _, s := range r.Stages {
		if s.Skip != "" || s.Copy != nil {
			continue
		}
		for i := range out {
			out[i].Stages++
		}
		for _, m := range s.SMs {
			if m.SM < 0 || m.SM >= len(out) {
				continue
			}
			st := &out[m.SM]
			if w := m.Mismatch; w != nil {
				if !slices.Contains(st.Wrong, s.Kernel) {
					st.Wrong = append(st.Wrong, s.Kernel)
				}
				st.Heat = max(st.Heat, min(float64(w.Words)/float64(max(s.Words, 1)), 1))
				if w.Where != nil && st.Partition < 0 {
					st.Partition = w.Where.Partition
				}
			} else if m.Verified > 0 && s.Err == "" && s.Canary.Seen {
				st.Verified++
			}
		}
	}
	return out
}

const (
	cell   = 44 // pixels, with the gap
	side   = 40
	margin = 20
	head   = 56
)

// size is that of a picture of so many SMs, in pixels.
func size(sms int) (w, h int) {
	rows := max((sms+columns-1)/columns, 1)
	return 2*margin + columns*cell, head + rows*cell + margin + 24
}

// place is the upper left corner of an SM's cell.
func place(sm int) (x, y int) { return margin + sm%columns*cell, head + sm/columns*cell }

// SVG draws the SMs as a heat map that needs no other file: green when every kernel that ran was verified there, grey when
// not all were, yellow to red by the share of a block's words that was wrong. A black quarter is the partition in which a
// fault was located.
func SVG(r golden.Result) string {
	states := SMs(r)
	w, h := size(len(states))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", w, h)
	v := golden.Judge(r, golden.Grades{Simulated: r.GPU.Simulated})
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="15" fill="#111111">%s: %s</text>`+"\n", margin, text(r.GPU.UUID), v.Outcome)
	fmt.Fprintf(&b, `<text x="%d" y="43" font-size="12" fill="#444444">%s, suite %s, size %s, %d SMs</text>`+"\n", margin, text(r.GPU.Name), text(r.Suite), text(r.Size), len(states))
	for _, s := range states {
		x, y := place(s.SM)
		fmt.Fprintf(&b, `<g><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s"/>`, text(s.describe()), x, y, side, side, s.colour())
		if s.Partition >= 0 && s.Partition < golden.Partitions {
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="#000000" class="partition"/>`, x+s.Partition%2*side/2, y+s.Partition/2*side/2, side/2, side/2)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="11" text-anchor="middle" fill="#ffffff" stroke="#222222" stroke-width="2" paint-order="stroke">%d</text></g>`+"\n", x+side/2, y+side/2+4, s.SM)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="11" fill="#444444">green verified, grey not verified by all kernels, yellow to red wrong (share of words); black: partition located</text>`+"\n</svg>\n", margin, h-margin+4)
	return b.String()
}

func (s SMState) describe() string {
	t := fmt.Sprintf("SM %d: %d of %d stages verified", s.SM, s.Verified, s.Stages)
	if len(s.Wrong) > 0 {
		t += fmt.Sprintf("; wrong: %s, %.1f %% of the words", strings.Join(s.Wrong, ", "), 100*s.Heat)
	}
	return t
}

func (s SMState) colour() string {
	red, green, blue := s.rgb()
	return fmt.Sprintf("#%02x%02x%02x", red, green, blue)
}

func (s SMState) rgb() (red, green, blue byte) {
	switch s.letter() {
	case '.':
		return 0x2E, 0x9E, 0x5B
	case '-':
		return 0xB5, 0xB5, 0xB5
	}
	// From yellow, one word wrong, to red, all of them.
	return byte(0xE8 - int(0x38*s.Heat)), byte(0xB8 - int(0xA8*s.Heat)), 0x10
}

func text(s string) string { return html.EscapeString(line(strings.ToValidUTF8(s, "?"))) }
