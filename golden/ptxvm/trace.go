package ptxvm

// An Operation is one instruction that a warp is about to run, as Config.Trace is told of it. It holds only during the call.
type Operation struct {
	Lanes uint32 // that run it
	w     *warp
	in    *inst
}

// Name is the instruction as in the PTX, as mad.wide.u32.
func (o Operation) Name() string { return o.in.full }

// Unit is the pipe that runs it.
func (o Operation) Unit() Unit { return o.in.unit }

// Place is the SM and its partition.
func (o Operation) Place() (sm, part int) { return o.w.b.sm.id, o.w.part() }

// Table is the constant of a lop3.
func (o Operation) Table() uint8 { return o.in.table }

// Operands appends what the instruction reads in a lane, in the order of the PTX: registers and constants, an address as its
// base and its offset.
func (o Operation) Operands(lane int, to []uint64) []uint64 {
	args := o.in.args
	if len(o.in.dst) > 0 && len(args) > 0 {
		args = args[1:]
	}
	return o.w.operands(args, lane, to)
}

func (w *warp) operands(args []arg, lane int, to []uint64) []uint64 {
	for i := range args {
		switch a := &args[i]; a.kind {
		case argReg, argImm:
			to = append(to, w.val(a)[lane])
		case argList:
			to = w.operands(a.list, lane, to)
		case argAddr:
			base := uint64(0)
			if a.reg >= 0 {
				base = w.r[a.reg][lane]
			}
			to = append(to, base, uint64(a.off))
		}
	}
	return to
}

// part is the SM's partition that the warp runs in.
func (w *warp) part() int { return w.first / 32 % 4 }
