package ptxvm

// A Result is one lane's result of one instruction, as it is about to be written.
type Result struct {
	Entry  string
	Line   int // of the PTX text
	Thread int // in the block
	Nth    int // of the instruction's results
	Width  int // bits
	Value  uint64
}

// tapped is step with the device's Tap on: the instruction runs, and what the tap makes of each result is what stays.
func (w *warp) tapped(in *inst, m uint32) {
	in.exec(w, m)
	tap, name := w.b.run.dev.cfg.Tap, w.b.run.entry.Name
	for i, r := range in.dst {
		all(m, func(l int) {
			w.r[r][l] = tap(Result{name, in.line, w.first + l, i, in.width, w.r[r][l]})
		})
	}
}
