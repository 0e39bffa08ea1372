package report

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/golden"
)

// writeCopies gives the bandwidth of every test of copies, and what was wrong with any.
func writeCopies(b *strings.Builder, r golden.Result) {
	head := false
	for _, s := range r.Stages {
		if s.Copy == nil {
			continue
		}
		for _, rate := range s.Copy.Rates {
			if !head {
				b.WriteString("## Copies\n\n| test | seed | direction | GB/s, median | worst | copies timed |\n|---|---|---|---|---|---|\n")
				head = true
			}
			fmt.Fprintf(b, "| %s | %d | %s | %.1f | %.1f | %d |\n", line(s.Kernel), s.Seed, direction(s, rate), rate.Median/1e9, rate.Worst/1e9, rate.Samples)
		}
	}
	if head {
		b.WriteByte('\n')
	}
	for _, s := range r.Stages {
		if s.Copy != nil && s.Copy.Wrong != nil {
			writeWrongCopy(b, r, s)
		}
	}
}

func direction(s golden.Stage, r golden.Rate) string {
	text := strings.ReplaceAll(line(r.Direction), "_", " ")
	if s.Copy.Peer != "" {
		text += " " + line(s.Copy.Peer)
	}
	return text + either(r.Together, ", both ways at once", "")
}

func writeWrongCopy(b *strings.Builder, r golden.Result, s golden.Stage) {
	w := s.Copy.Wrong
	fmt.Fprintf(b, "## %s, seed %d: wrong data\n\n", line(s.Kernel), s.Seed)
	if c, ok := golden.LookupCopy(s.Kernel); ok {
		fmt.Fprintf(b, "- unit under test: %s\n", c.Unit)
	}
	fmt.Fprintf(b, "- wrong: %d words of a copy of %d bytes at byte %d, %s, pattern %d\n", w.Words, w.Bytes, w.Offset, direction(s, golden.Rate{Direction: w.Direction}), w.Pattern)
	fmt.Fprintf(b, "- first wrong word: byte %d: expected %08x, got %08x; bits that differ in any: %08x\n", w.First, w.Expected, w.Got, w.Bits)
	fmt.Fprintf(b, "- compared again: %s; what was copied: %s\n", either(w.Reread, "the same wrong words", "other words"), either(w.Inputs, "intact", "changed"))
	writeOften(b, s, golden.NoSM)
	fmt.Fprintf(b, "\nThe same again, on this GPU%s:\n\n    %s\n\n", either(r.GPU.Simulated, " (with --sim and its directory)", ""), copyAgain(r, s))
}

// copyAgain is the command that makes the same copies again: test, size and seed fix every byte.
func copyAgain(r golden.Result, s golden.Stage) string {
	return fmt.Sprintf("assay-agent golden run --gpu %s --size %s --kernel %s --seed %d", quote(r.GPU.UUID), quote(r.Size), quote(s.Kernel), s.Seed)
}
