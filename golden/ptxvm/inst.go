package ptxvm

import "strings"

type kind uint8

const (
	kindPlain   kind = iota
	kindBranch       // may change the program counter
	kindRet          // the lane ends
	kindBar          // waits for the block
	kindCollect      // waits for the lanes of a mask
	kindYield        // gives others a turn
)

// An inst is one instruction, ready to run.
type inst struct {
	line int
	full string   // as in the text, as mad.wide.u32
	op   string   // its first part
	mods []string // the rest
	stem string   // its class in a fault file's prev_op
	unit Unit
	kind kind

	pred    int // predicate register, or -1
	predNeg bool
	args    []arg
	targets []string // labels
	jumps   []int    // where they are

	dst, src []int // registers written and read
	width    int   // bits of what is written, for faults
	table    uint8 // of lop3
	exec     func(w *warp, m uint32)
	members  func(w *warp, l int) uint32 // the lanes a collective joins, as lane l names them
}

func (i *inst) has(mod string) bool {
	for _, m := range i.mods {
		if m == mod {
			return true
		}
	}
	return false
}

// instruction reads one instruction and builds what runs it.
func (p *parser) instruction() {
	in := inst{pred: -1, line: p.tok[p.at].line}
	if p.accept("@") {
		in.predNeg = p.accept("!")
		r, ok := p.lookup(p.next())
		if !ok {
			p.fail("a predicate that is no register")
		}
		in.pred = r
		in.src = append(in.src, r)
	}
	in.full = p.next()
	parts := strings.Split(in.full, ".")
	in.op, in.mods = parts[0], parts[1:]
	for !p.accept(";") {
		a := p.operand()
		if p.accept("|") {
			a = arg{kind: argList, reg: -1, list: []arg{a, p.operand()}}
		}
		in.args = append(in.args, a)
		if p.peek() != ";" {
			p.want(",")
		}
	}
	build, ok := builders[in.op]
	if !ok {
		p.at--
		p.fail("instruction %q is not known", in.full)
	}
	in.stem = in.op
	build(p, &in)
	p.entry.insts = append(p.entry.insts, in)
}

// arity complains of a wrong number of operands.
func (p *parser) arity(in *inst, n ...int) {
	for _, k := range n {
		if len(in.args) == k {
			return
		}
	}
	p.fail("%s with %d operands", in.full, len(in.args))
}

// writes and reads note registers for the initialisation check and for faults.
func (p *parser) writes(in *inst, as ...arg) {
	for _, a := range as {
		switch a.kind {
		case argReg:
			in.dst = append(in.dst, a.reg)
		case argList:
			p.writes(in, a.list...)
		case argSink:
		default:
			p.fail("%s writes to what is no register", in.full)
		}
	}
}

func (p *parser) reads(in *inst, as ...arg) {
	for _, a := range as {
		switch a.kind {
		case argReg:
			in.src = append(in.src, a.reg)
		case argList:
			p.reads(in, a.list...)
		case argAddr:
			if a.reg >= 0 {
				in.src = append(in.src, a.reg)
			}
		case argName:
			p.fail("%s: operand %q is not known", in.full, a.name)
		}
	}
}

// lastType is the type that ends an instruction's name.
func (p *parser) lastType(in *inst) typ {
	for i := len(in.mods) - 1; i >= 0; i-- {
		if t, ok := types[in.mods[i]]; ok {
			return t
		}
	}
	p.fail("%s has no type", in.full)
	return typ{}
}

func (p *parser) reg(in *inst, a arg) int {
	if a.kind != argReg {
		p.fail("%s: want a register", in.full)
	}
	return a.reg
}
