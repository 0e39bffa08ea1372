package kernlog

// A word is what a check waits for in a line.
type word struct {
	text   string
	topics uint8
}

// A scanner goes over a line once and says which words it met (Aho and Corasick, 1975). States are small numbers; from each,
// every class of bytes leads to one other. Bytes that stand in no word are one class.
type scanner struct {
	class [256]uint8
	wide  int      // how many classes there are, rounded up to a power of two
	shift uint     // log2 of wide
	next  []uint16 // by state << shift | class
	found []uint8  // by state: the topics of all words that end there
}

var machine = newScanner(words[:])

// topics gives the topics of the words in the line.
func topics[L ~string | ~[]byte](m *scanner, line L) uint8 {
	var state uint16
	var out uint8
	next, found, shift := m.next, m.found, m.shift
	for i := range len(line) {
		state = next[int(state)<<shift|int(m.class[line[i]])]
		out |= found[state]
	}
	return out
}

// newScanner makes the machine: a tree of the words first, then from each node where to go on when the next byte leads
// nowhere.
func newScanner(ws []word) *scanner {
	m := &scanner{}
	classes := 1
	for _, w := range ws {
		for i := range len(w.text) {
			if c := w.text[i]; m.class[c] == 0 {
				m.class[c] = uint8(classes)
				classes++
			}
		}
	}
	for m.wide = 1; m.wide < classes; m.shift++ {
		m.wide *= 2
	}
	m.grow()
	for _, w := range ws {
		s := uint16(0)
		for i := range len(w.text) {
			at := int(s)<<m.shift | int(m.class[w.text[i]])
			if m.next[at] == 0 {
				m.next[at] = m.grow()
			}
			s = m.next[at]
		}
		m.found[s] |= w.topics
	}
	m.link()
	return m
}

func (m *scanner) grow() uint16 {
	m.next = append(m.next, make([]uint16, m.wide)...)
	m.found = append(m.found, 0)
	return uint16(len(m.found) - 1)
}

// link fills in the steps that leave the tree. In order of depth: a state's fallback is nearer to the root, and done.
func (m *scanner) link() {
	back := make([]uint16, len(m.found))
	var queue []uint16
	for c := range m.wide {
		if s := m.next[c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		m.found[s] |= m.found[back[s]]
		for c := range m.wide {
			at := int(s)<<m.shift | c
			over := m.next[int(back[s])<<m.shift|c]
			if to := m.next[at]; to != 0 {
				back[to] = over
				queue = append(queue, to)
			} else {
				m.next[at] = over
			}
		}
	}
}
