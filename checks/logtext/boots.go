package logtext

// maxBoots bounds how many boots of one text are told apart.
const maxBoots = 1 << 12

// boots tells which of the boots that a text names are over: another one of the same machine began after them, and the text
// says so. The zero value has seen none.
type boots struct {
	now    map[string]string // by machine: the boot it is in
	past   map[string]bool
	mixed  bool   // a boot came back after another: what is over, nobody can tell
	undo   string // the boot that the last separator ended, as long as no line has told of which machine it was
	undoes bool
}

// begin takes in that a machine is in a boot. sure: the text says that it has booted; a clock that goes back does not.
func (b *boots) begin(machine, boot string, sure bool) {
	if b.now == nil {
		b.now, b.past = map[string]string{}, map[string]bool{}
	}
	was, known := b.now[machine]
	if known && was == boot {
		return
	}
	if b.past[boot] || len(b.past)+len(b.now) >= maxBoots {
		b.mixed = true
		return
	}
	b.now[machine] = boot
	b.undo, b.undoes = "", false
	if known && sure {
		b.past[was] = true
		b.undo, b.undoes = was, true
	}
}

// another takes in that the boot which began last is another machine's than was thought: nothing ended.
func (b *boots) another() {
	if b.undoes {
		delete(b.past, b.undo)
		b.undoes = false
	}
}

// Past reports whether the text tells that a boot is over, since its machine has booted anew. Two texts, one after the other,
// tell so of each other when they do not say which machine they are of.
func (r *Reader) Past(boot string) bool { return !r.over.mixed && r.over.past[boot] }
