// Package report turns what golden run has found into a page for people: what was wrong, where, how often, on which
// operands, and the command that runs the same again; with a picture of the GPU's SMs.
//
// It is pure. What a GPU should have held before the first wrong step is computed anew from the seed.
package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

// Text is the report on one GPU, as Markdown that also reads as plain text. picture names the file of the picture, empty
// for none.
func Text(r golden.Result, picture string) string {
	var b strings.Builder
	v := golden.Judge(r, golden.Grades{Simulated: r.GPU.Simulated})
	fmt.Fprintf(&b, "# GPU %s: %s\n\n%s.\n\n", line(r.GPU.UUID), v.Outcome, line(v.Reason))
	writeDevice(&b, r)
	if picture != "" {
		fmt.Fprintf(&b, "![SMs of the GPU](%s)\n\n", picture)
	}
	writeGrid(&b, r)
	writeCopies(&b, r)
	for _, s := range r.Stages {
		for _, m := range s.SMs {
			if m.Mismatch != nil {
				writeWrong(&b, r, s, m)
			}
		}
	}
	writeGaps(&b, r)
	return b.String()
}

// line keeps text of a result on one line: it may come from a file that anyone wrote.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }

func writeDevice(b *strings.Builder, r golden.Result) {
	name := line(r.GPU.Name)
	if r.GPU.Simulated {
		name += ", simulated"
	}
	fmt.Fprintf(b, "- GPU: %s, PCI %s, compute capability %d.%d, %d SMs\n", name, line(r.GPU.PCI), r.GPU.Capability/10, r.GPU.Capability%10, r.GPU.SMs)
	fmt.Fprintf(b, "- driver: CUDA %d.%d, %s\n", r.GPU.Driver/1000, r.GPU.Driver%1000/10, line(r.GPU.Library))
	m := golden.Cover(r)
	fmt.Fprintf(b, "- run: suite %s, size %s, %d stages, %.1f s; %d of %d cells (kernel, SM, partition) verified\n\n",
		line(r.Suite), line(r.Size), len(r.Stages), r.Seconds, m.Verified, m.Cells)
}

// writeGrid draws the SMs with letters, as the picture does with colours.
func writeGrid(b *strings.Builder, r golden.Result) {
	states := SMs(r)
	if len(states) == 0 {
		return
	}
	b.WriteString("SMs in order (. verified by every kernel that ran, x wrong, - not verified by all):\n\n")
	for i, s := range states {
		switch {
		case i%columns == 0:
			fmt.Fprintf(b, "    %4d ", i)
		case i%4 == 0:
			b.WriteByte(' ')
		}
		b.WriteByte(s.letter())
		if i%columns == columns-1 || i == len(states)-1 {
			b.WriteByte('\n')
		}
	}
	b.WriteByte('\n')
}

func writeWrong(b *strings.Builder, r golden.Result, s golden.Stage, sm golden.SM) {
	m := sm.Mismatch
	k, known := kernels.Lookup(s.Kernel)
	fmt.Fprintf(b, "## %s on SM %d\n\n", line(s.Kernel), sm.SM)
	if known {
		fmt.Fprintf(b, "- unit under test: %s; a step is: %s\n", k.Unit, k.Does)
	}
	fmt.Fprintf(b, "- wrong: %d of %d words, in %s\n", m.Words, s.Words, threads(m.Threads))
	fmt.Fprintf(b, "- first wrong word: thread %d, word %d: expected %08x, got %08x, differing in %08x\n",
		m.First.Thread, m.First.Word, m.First.Expected, m.First.Got, m.First.Expected^m.First.Got)
	fmt.Fprintf(b, "- read again from the device: %s; inputs after the run: %s\n", either(m.Reread, "the same wrong words", "other words"), either(m.Inputs, "intact", "changed"))
	writeOften(b, s, sm.SM)
	b.WriteString("- temperature and clock: not recorded\n")
	fmt.Fprintf(b, "- kernel code: %s (%s); seed %d\n", line(s.Digest), ranText(s), s.Seed)
	size, err := golden.SizeOf(r.Size)
	want := golden.Digest{}
	if err == nil {
		want, err = golden.Known(s.Kernel, size, s.Seed)
	}
	if known && err == nil && golden.KernelDigest(k) == s.Digest {
		fmt.Fprintf(b, "- digest of the output: expected %s, got %s\n", want, orUnknown(m.Digest))
		writeOrigin(b, k, s, size, m.Where)
	} else {
		b.WriteString("- operands and the expected digest: not computed, this program has other code, or another size, for this kernel\n")
	}
	fmt.Fprintf(b, "\nThe same again, on this GPU%s:\n\n    %s\n\n", either(r.GPU.Simulated, " (with --sim and its directory)", ""), Reproducer(r, s, sm))
}

func writeOften(b *strings.Builder, s golden.Stage, sm int) {
	same, others, wrongOthers, errs := 0, 0, 0, 0
	var elsewhere []int
	for _, t := range s.Retests {
		if t.Err != "" {
			errs++
		}
		if t.Seed == s.Seed {
			same++
		} else {
			others++
			if slices.Contains(t.Wrong, sm) {
				wrongOthers++
			}
		}
		for _, w := range t.Wrong {
			if w != sm && !slices.Contains(elsewhere, w) {
				elsewhere = append(elsewhere, w)
			}
		}
	}
	fmt.Fprintf(b, "- again: in %d of %d reruns with the same seed, in %d of %d with others", s.Reproduced(sm), same, wrongOthers, others)
	if errs > 0 {
		fmt.Fprintf(b, "; %d reruns had a fault of their own", errs)
	}
	if slices.Sort(elsewhere); len(elsewhere) > 0 {
		fmt.Fprintf(b, "; also wrong then: SMs %v", elsewhere)
	}
	b.WriteByte('\n')
}

// writeOrigin says what went into the first wrong step. Up to there the GPU had computed what the reference does.
func writeOrigin(b *strings.Builder, k kernels.Kernel, s golden.Stage, size golden.Size, o *golden.Origin) {
	if o == nil || o.Step < 0 || o.Step >= size.Steps(k) || o.Thread < 0 || o.Thread >= size.Threads {
		b.WriteString("- where it began: not known; it did not come back often enough for a bisection\n")
		return
	}
	fmt.Fprintf(b, "- where it began: step %d of %d, partition %d, lane %d (thread %d); %d threads wrong after it\n", o.Step, size.Steps(k), o.Partition, o.Lane, o.Thread, o.Threads)
	x := ref.Block(k.ID, uint64(s.Seed), size.Threads, o.Step)
	fmt.Fprintf(b, "- operands: the thread's state before that step:")
	for i := o.Thread; i < len(x); i += size.Threads {
		fmt.Fprintf(b, " %08x", x[i])
	}
	fmt.Fprintf(b, "\n- result: word %d after the step: expected %08x, got %08x, differing in %08x (as the step has rotated it)\n", o.Word, o.Expected, o.Got, o.Expected^o.Got)
	if o.Stuck != nil {
		fmt.Fprintf(b, "- explained, in every word of the block, by: %s\n", line(o.Stuck.String()))
	} else {
		b.WriteString("- no single stuck bit of the units that the step uses explains it\n")
	}
}

// writeGaps lists what the run does not speak for.
func writeGaps(b *strings.Builder, r golden.Result) {
	var gaps []string
	if r.Err != "" {
		gaps = append(gaps, "the run: "+line(r.Err)+either(r.Blame != "", " (speaks against the "+string(r.Blame)+")", ""))
	}
	for _, s := range r.Stages {
		switch {
		case s.Skip != "":
			gaps = append(gaps, s.Kernel+": does not apply: "+s.Skip)
		case s.Gap(r.GPU.SMs) != "":
			gaps = append(gaps, s.Kernel+": "+s.Gap(r.GPU.SMs))
		}
	}
	if len(gaps) == 0 {
		return
	}
	b.WriteString("## Not tested\n\n")
	for _, g := range gaps {
		fmt.Fprintf(b, "- %s\n", line(g))
	}
	b.WriteByte('\n')
}

// Reproducer is the command that runs what was wrong again: code, size and seed fix every operand, and the command compares
// what it sees with what was seen.
func Reproducer(r golden.Result, s golden.Stage, sm golden.SM) string {
	if _, ok := kernels.Lookup(s.Kernel); !ok { // a program of a corpus, which is kept since it has found something
		return fmt.Sprintf("assay-agent golden corpus run --gpu %s --program %s --seed %d", quote(r.GPU.UUID), quote(s.Kernel), s.Seed)
	}
	return fmt.Sprintf("assay-agent golden run --gpu %s --replay %s", quote(r.GPU.UUID), quote(golden.ReplayOf(r, s, sm).String()))
}

// quote makes a shell word of text that may come from anywhere.
func quote(s string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '=' || c == ','
	}
	if s != "" && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(line(s), "'", `'\''`) + "'"
}

func threads(ts []int) string {
	switch {
	case len(ts) == 1:
		return fmt.Sprintf("thread %d (partition %d, lane %d)", ts[0], ts[0]/32%golden.Partitions, ts[0]%32)
	case len(ts) >= 64:
		return "64 threads or more"
	}
	return fmt.Sprintf("%d threads", len(ts))
}

func either(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// ranText says what ran: audited machine code, or PTX and why.
func ranText(s golden.Stage) string {
	switch {
	case s.Code == golden.Cubin:
		return fmt.Sprintf("audited machine code for %s, %s", line(s.Target), line(s.Cubin))
	case s.Unaudited != "":
		return "assembled by the driver, unaudited: " + line(s.Unaudited)
	}
	return "assembled by the driver, unaudited"
}

func orUnknown(s string) string { return either(s != "", line(s), "not recorded") }
