package timemap

import "math/bits"

// An Ask is what a job needs of every node it gets.
type Ask struct {
	GPUs     int    // of a node, the same ones all the time; 0: all it has
	Duration int64  // seconds
	From     int32  // first slot in which it may start
	Until    int32  // last slot in which it may start
	Own      Owner  // claims of this owner do not bind it: the reservation it belongs to
	Count    int    // nodes
	Also     int32  // a slot to look at though no node was gained: the job will ask less from then on; 0: none
	Nodes    []bool // which nodes may be considered; nil: all
	// Latest is the last slot in which it may start on a node, by node: an expiring certificate forbids later starts. nil:
	// no such slot.
	Latest []int32
}

// A Fit is one slot in which enough nodes are free, as Sweep shows it.
type Fit struct {
	Slot, End int32
	Free      []uint64 // bit set of the nodes
	Count     int      // of them
}

type sweepScratch struct {
	gain, loss [][]int32 // by slot
	free       []uint64
}

// Sweep goes through the slots in order and calls try at each in which at least Count nodes are free for the whole
// Duration, once at the first and then whenever a node has come to be free, until try says that it is content. It returns
// that slot, or ok false.
//
// The cost is one step for each node and each of its claims, and one for each slot.
func (m *Map) Sweep(a Ask, try func(Fit) bool) (slot int32, ok bool) {
	last := min(a.Until, m.grid.Slots()-1)
	if a.From > last {
		return 0, false
	}
	way, known := m.courses[a.Duration]
	if !known {
		way = m.grid.course(a.Duration)
		m.courses[a.Duration] = way
	}
	s := &m.sweep
	s.reset(int(m.grid.Slots())+1, len(m.all))
	for node := range int32(len(m.all)) {
		if a.Nodes != nil && !a.Nodes[node] {
			continue
		}
		until := last
		if a.Latest != nil {
			until = min(until, a.Latest[node])
		}
		if until >= a.From {
			m.starts(node, a, until, way.last)
		}
	}
	count := 0
	for at := a.From; at <= last; at++ {
		for _, node := range s.loss[at] {
			s.free[node>>6] &^= 1 << (node & 63)
			count--
		}
		for _, node := range s.gain[at] {
			s.free[node>>6] |= 1 << (node & 63)
			count++
		}
		if count >= a.Count && (len(s.gain[at]) > 0 || at == a.Also && at > 0) && try(Fit{Slot: at, End: way.ends[at], Free: s.free, Count: count}) {
			return at, true
		}
	}
	return 0, false
}

// Now is Sweep for slot 0 alone. It looks only at nodes that have something free now, and fails at once when they are too
// few. fit is good until the next call.
func (m *Map) Now(a Ask) (fit Fit, ok bool) {
	if a.Own != 0 { // what its owner keeps is not idle, but free for it
		a.From, a.Until = 0, 0
		_, ok = m.Sweep(a, func(f Fit) bool { fit = f; return true })
		return fit, ok
	}
	s := &m.sweep
	s.reset(0, len(m.all))
	end := m.grid.Up(m.grid.At(0) + a.Duration)
	count, kept := 0, m.idle[:0]
	for _, node := range m.idle {
		if m.Free(node, 0, 1, 0) == 0 {
			continue // taken since: nothing gives it back
		}
		kept = append(kept, node)
		if a.Nodes != nil && !a.Nodes[node] || a.Latest != nil && a.Latest[node] < 0 {
			continue
		}
		need := a.GPUs
		if need == 0 {
			need = bits.OnesCount32(m.all[node])
		}
		if need > 0 && bits.OnesCount32(m.Free(node, 0, end, 0)) >= need {
			s.free[node>>6] |= 1 << (node & 63)
			count++
		}
	}
	m.idle = kept
	return Fit{Slot: 0, End: end, Free: s.free, Count: count}, count >= a.Count
}

func (s *sweepScratch) reset(slots, nodes int) {
	for len(s.gain) < slots {
		s.gain, s.loss = append(s.gain, nil), append(s.loss, nil)
	}
	for i := range s.gain {
		s.gain[i], s.loss[i] = s.gain[i][:0], s.loss[i][:0]
	}
	if n := (nodes + 63) / 64; len(s.free) != n {
		s.free = make([]uint64, n)
	}
	clear(s.free)
}

// starts notes the slots, up to until, in which the job may start on a node, as ranges: one for each stretch in which the
// node's free GPUs do not change, so that a change is seen as a gain.
func (m *Map) starts(node int32, a Ask, until int32, last []int32) {
	has := bits.OnesCount32(m.all[node])
	need := a.GPUs
	if need == 0 {
		need = has
	}
	switch {
	case need == 0 || has < need:
	case need == has:
		m.wholeStarts(node, a, until, last)
	default:
		m.partStarts(node, a, need, until, last)
	}
}

// wholeStarts is starts for a job that needs all of a node: only the gaps between claims count.
func (m *Map) wholeStarts(node int32, a Ask, until int32, last []int32) {
	at := a.From
	for _, c := range m.claims[node] {
		if a.Own != 0 && c.Owner == a.Own || c.To <= at || c.GPUs&m.all[node] == 0 {
			continue
		}
		if c.From > at {
			m.note(node, at, min(last[c.From], until))
		}
		if at = c.To; at > until {
			return
		}
	}
	m.note(node, at, min(last[m.grid.Slots()], until))
}

// note adds the slots from first to last as good starts on a node.
func (m *Map) note(node, first, last int32) {
	if first <= last {
		m.sweep.gain[first] = append(m.sweep.gain[first], node)
		m.sweep.loss[last+1] = append(m.sweep.loss[last+1], node)
	}
}

// partStarts is starts for a job that needs some GPUs of a node, the same ones all the time.
func (m *Map) partStarts(node int32, a Ask, need int, until int32, last []int32) {
	for at := a.From; at <= until; {
		free, next := m.stretch(node, at, a.Own)
		if bits.OnesCount32(free) < need {
			at = next
			continue
		}
		// Until where do enough of these same GPUs stay free? A start is good while its end does not lie beyond.
		end := next
		for end < m.grid.Slots() {
			f, n := m.stretch(node, end, a.Own)
			if bits.OnesCount32(free&f) < need {
				break
			}
			free &= f
			end = n
		}
		m.note(node, at, min(last[end], until, next-1))
		at = next
	}
}

// stretch is the GPUs of a node that are free in slot at, and the slot up to which that does not change.
func (m *Map) stretch(node, at int32, own Owner) (free uint32, until int32) {
	free, until = m.all[node], m.grid.Slots()
	for _, c := range m.claims[node] {
		if own != 0 && c.Owner == own {
			continue
		}
		if c.From > at {
			until = min(until, c.From)
			break
		}
		if c.To > at {
			free &^= c.GPUs
			until = min(until, c.To)
		}
	}
	return free, until
}
