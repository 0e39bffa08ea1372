package ptxvm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Module is parsed PTX.
type Module struct {
	Version string // of the PTX language, as "6.3"
	Target  string // as "sm_70"
	Entries map[string]*Entry
	consts  []byte // constant memory
}

// An Entry is a kernel.
type Entry struct {
	Name       string
	Params     []Param
	ParamBytes int
	Shared     int // bytes of static shared memory
	MaxThreads int // .maxntid; 0 when there is none
	insts      []inst
	regs       int
	mod        *Module
	base       int // where dynamic shared memory begins, 0 when the PTX does not name it
}

// A Param is a kernel's parameter and where it lies among the parameters' bytes.
type Param struct {
	Name         string
	Offset, Size int
}

// A ParseError says where PTX is not what the machine knows. It is refused whole.
type ParseError struct {
	Line int
	Msg  string
}

func (e *ParseError) Error() string { return fmt.Sprintf("ptx line %d: %s", e.Line, e.Msg) }

type parser struct {
	tok    []token
	at     int
	mod    *Module
	entry  *Entry
	scopes []map[string]int // register names, innermost last
	shared map[string]int   // offsets of shared variables
	labels map[string]int
	width  []int // of each register, in bits; 1 is a predicate

	externs []string       // names of dynamic shared memory
	consts  map[string]int // offsets of constants
}

// Parse reads a PTX module. The error is a *ParseError.
func Parse(src string) (m *Module, err error) {
	toks, err := lex(src)
	if err != nil {
		return nil, &ParseError{0, err.Error()}
	}
	p := &parser{tok: toks, mod: &Module{Entries: map[string]*Entry{}}}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *ParseError:
			m, err = nil, r
		default:
			panic(r)
		}
	}()
	for p.at < len(p.tok) {
		p.top()
	}
	if p.mod.Version == "" || p.mod.Target == "" {
		p.fail("no .version or no .target")
	}
	return p.mod, nil
}

func (p *parser) fail(format string, args ...any) {
	line := 0
	if p.at < len(p.tok) {
		line = p.tok[p.at].line
	} else if len(p.tok) > 0 {
		line = p.tok[len(p.tok)-1].line
	}
	panic(&ParseError{line, fmt.Sprintf(format, args...)})
}

func (p *parser) peek() string {
	if p.at >= len(p.tok) {
		return ""
	}
	return p.tok[p.at].text
}

func (p *parser) next() string {
	if p.at >= len(p.tok) {
		p.fail("the text ends too early")
	}
	p.at++
	return p.tok[p.at-1].text
}

func (p *parser) want(s string) {
	if got := p.next(); got != s {
		p.at--
		p.fail("%q where %q should be", got, s)
	}
}

func (p *parser) accept(s string) bool {
	if p.peek() == s {
		p.at++
		return true
	}
	return false
}

func (p *parser) number() int {
	s := p.next()
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil || n < 0 || n > 1<<30 {
		p.at--
		p.fail("%q: want a number", s)
	}
	return int(n)
}

func (p *parser) top() {
	switch d := p.next(); d {
	case ".version":
		p.mod.Version = p.next()
	case ".target":
		p.mod.Target = p.next()
		for p.accept(",") {
			p.next()
		}
	case ".address_size":
		if n := p.number(); n != 64 {
			p.fail("address size %d: want 64", n)
		}
	case ".visible", ".weak":
	case ".extern":
		p.externShared()
	case ".const":
		p.constant()
	case ".entry":
		p.parseEntry()
	default:
		p.at--
		p.fail("%q is not known at this level", d)
	}
}

func (p *parser) parseEntry() {
	e := &Entry{Name: p.next(), mod: p.mod}
	if _, twice := p.mod.Entries[e.Name]; twice {
		p.fail("entry %s: twice", e.Name)
	}
	p.entry, p.shared, p.labels, p.width = e, map[string]int{}, map[string]int{}, nil
	p.scopes = []map[string]int{{}}
	for _, name := range p.externs {
		p.shared[name], e.base = dynamicAt, dynamicAt
	}
	if p.accept("(") {
		for !p.accept(")") {
			p.want(".param")
			align := 0
			if p.accept(".align") {
				align = p.number()
			}
			size := typeOf(p, p.next()).bytes
			name := p.next()
			if p.accept("[") {
				size *= p.number()
				p.want("]")
			}
			if align == 0 {
				align = size
			}
			if align <= 0 || align&(align-1) != 0 {
				p.fail("alignment %d", align)
			}
			e.ParamBytes = (e.ParamBytes + align - 1) &^ (align - 1)
			e.Params = append(e.Params, Param{name, e.ParamBytes, size})
			e.ParamBytes += size
			p.accept(",")
		}
	}
	for p.peek() != "{" {
		switch d := p.next(); d {
		case ".maxntid", ".reqntid":
			e.MaxThreads = p.number()
			for p.accept(",") {
				e.MaxThreads *= p.number()
			}
		case ".minnctapersm", ".maxnreg":
			p.number()
		default:
			p.at--
			p.fail("%q is not known before a body", d)
		}
	}
	p.want("{")
	for depth := 1; depth > 0; {
		switch t := p.next(); {
		case t == "{":
			depth++
			p.scopes = append(p.scopes, map[string]int{})
		case t == "}":
			depth--
			p.scopes = p.scopes[:len(p.scopes)-1]
		case t == ".reg":
			p.registers()
		case t == ".shared":
			p.sharedVariable()
		case t == ".pragma", t == ".loc", t == ".file":
			for !p.accept(";") && t == ".pragma" {
				p.next()
			}
		case t == ";":
		case p.peek() == ":" && t[0] != '@':
			p.next()
			if _, twice := p.labels[t]; twice {
				p.fail("label %s: twice", t)
			}
			p.labels[t] = len(e.insts)
		default:
			p.at--
			p.instruction()
		}
	}
	e.regs = len(p.width)
	if e.base > 0 && e.Shared > e.base {
		p.fail("%d bytes of static shared memory beside dynamic: want %d at most", e.Shared, e.base)
	}
	for i := range e.insts {
		in := &e.insts[i]
		for _, l := range in.targets {
			at, ok := p.labels[l]
			if !ok {
				panic(&ParseError{in.line, "no label " + l})
			}
			in.jumps = append(in.jumps, at)
		}
	}
	// Falling off the end is a return.
	e.insts = append(e.insts, inst{op: "ret", full: "ret", pred: -1, kind: kindRet, stem: "ret"})
	p.mod.Entries[e.Name] = e
}

// registers reads `.reg .b32 %r<9>;` or a list of names.
func (p *parser) registers() {
	t := typeOf(p, p.next())
	for {
		name := p.next()
		if p.accept("<") {
			n := p.number()
			if n > 1<<16 {
				p.fail("%d registers", n)
			}
			p.want(">")
			for i := range n {
				p.define(name+strconv.Itoa(i), t.bits)
			}
		} else {
			p.define(name, t.bits)
		}
		if !p.accept(",") {
			break
		}
	}
	p.want(";")
}

func (p *parser) define(name string, bits int) {
	p.scopes[len(p.scopes)-1][name] = len(p.width)
	p.width = append(p.width, bits)
}

func (p *parser) lookup(name string) (int, bool) {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if r, ok := p.scopes[i][name]; ok {
			return r, true
		}
	}
	return 0, false
}

func (p *parser) sharedVariable() {
	align := 0
	if p.accept(".align") {
		align = p.number()
	}
	size := typeOf(p, p.next()).bytes
	align = max(align, size)
	name := p.next()
	for p.accept("[") {
		size *= p.number()
		p.want("]")
	}
	p.want(";")
	if align&(align-1) != 0 || size > 1<<20 {
		p.fail("shared variable %s: alignment %d, %d bytes", name, align, size)
	}
	p.entry.Shared = (p.entry.Shared + align - 1) &^ (align - 1)
	p.shared[name] = p.entry.Shared
	p.entry.Shared += size
}

// dynamicAt is where dynamic shared memory begins, when PTX names it: static shared memory must lie below.
const dynamicAt = 1024

// externShared reads the name that stands for dynamic shared memory.
// constant reads a constant array and what it is initialised with.
func (p *parser) constant() {
	align := 1
	if p.accept(".align") {
		align = p.number()
	}
	size := typeOf(p, p.next()).bytes
	name := p.next()
	p.want("[")
	n := p.number()
	p.want("]")
	align = max(align, size)
	if align&(align-1) != 0 || n*size > constRoom {
		p.fail("constant %s of %d bytes, aligned to %d", name, n*size, align)
	}
	b := p.mod.consts
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	if p.consts == nil {
		p.consts = map[string]int{}
	}
	p.consts[name] = len(b)
	end := len(b) + n*size
	if p.accept("=") {
		p.want("{")
		for !p.accept("}") {
			v, ok := literal(p.next())
			if !ok || len(b)+size > end {
				p.at--
				p.fail("constant %s: %q", name, p.peek())
			}
			b = append(b, make([]byte, size)...)
			put(b[len(b)-size:], size, v)
			p.accept(",")
		}
	}
	p.want(";")
	if end > constRoom {
		p.fail("more than %d bytes of constants", constRoom)
	}
	p.mod.consts = append(b, make([]byte, end-len(b))...)
}

// constRoom is how much constant memory a module has. NVIDIA, "PTX ISA", constant state space.
const constRoom = 64 << 10

func (p *parser) externShared() {
	p.want(".shared")
	if p.accept(".align") {
		p.number()
	}
	typeOf(p, p.next())
	p.externs = append(p.externs, p.next())
	p.want("[")
	p.want("]")
	p.want(";")
}

// A typ is a PTX type.
type typ struct {
	bits, bytes int
	signed      bool
	float       bool
	packed      bool // two of 16 bits
	bf          bool
}

var types = map[string]typ{
	"pred": {bits: 1, bytes: 1},
	"b8":   {bits: 8, bytes: 1}, "u8": {bits: 8, bytes: 1}, "s8": {bits: 8, bytes: 1, signed: true},
	"b16": {bits: 16, bytes: 2}, "u16": {bits: 16, bytes: 2}, "s16": {bits: 16, bytes: 2, signed: true}, "f16": {bits: 16, bytes: 2, float: true},
	"b32": {bits: 32, bytes: 4}, "u32": {bits: 32, bytes: 4}, "s32": {bits: 32, bytes: 4, signed: true}, "f32": {bits: 32, bytes: 4, float: true},
	"b64": {bits: 64, bytes: 8}, "u64": {bits: 64, bytes: 8}, "s64": {bits: 64, bytes: 8, signed: true}, "f64": {bits: 64, bytes: 8, float: true},
	"f16x2":  {bits: 32, bytes: 4, float: true, packed: true},
	"bf16":   {bits: 16, bytes: 2, float: true, bf: true},
	"bf16x2": {bits: 32, bytes: 4, float: true, packed: true, bf: true},
}

func typeOf(p *parser, s string) typ {
	t, ok := types[strings.TrimPrefix(s, ".")]
	if !ok {
		p.fail("type %q is not known", s)
	}
	return t
}

func (t typ) mask() uint64 {
	if t.bits >= 64 {
		return math.MaxUint64
	}
	return 1<<t.bits - 1
}

// An arg is an operand.
type arg struct {
	kind argKind
	reg  int // register, or base register of an address; -1 for none
	imm  *lane
	off  int64 // of an address; the value of an immediate
	name string
	list []arg
	neg  bool // a predicate's !
}

type argKind uint8

const (
	argReg argKind = iota
	argImm
	argAddr
	argList
	argName // a label, or a special register
	argSink // _
)

// lane is one value for each lane of a warp.
type lane [32]uint64

func broadcast(v uint64) *lane {
	var l lane
	for i := range l {
		l[i] = v
	}
	return &l
}

func immediate(v uint64) arg { return arg{kind: argImm, reg: -1, imm: broadcast(v), off: int64(v)} }

func (p *parser) operand() arg {
	switch t := p.next(); {
	case t == "!":
		a := p.operand()
		a.neg = true
		return a
	case t == "-":
		a := p.operand()
		if a.kind != argImm {
			p.fail("- before an operand that is no number")
		}
		return immediate(uint64(-a.off))
	case t == "_":
		return arg{kind: argSink, reg: -1}
	case t == "{":
		l := arg{kind: argList, reg: -1}
		for !p.accept("}") {
			l.list = append(l.list, p.operand())
			p.accept(",")
		}
		return l
	case t == "[":
		a := arg{kind: argAddr, reg: -1}
		for first := true; !p.accept("]"); first = false {
			sign := int64(1)
			if !first || p.peek() == "-" {
				switch s := p.next(); s {
				case "+":
				case "-":
					sign = -1
				default:
					p.at--
					p.fail("%q in an address", s)
				}
				if p.accept("-") {
					sign = -sign
				}
			}
			w := p.next()
			if r, ok := p.lookup(w); ok {
				if a.reg >= 0 || sign < 0 {
					p.fail("two registers in an address")
				}
				a.reg = r
			} else if off, ok := p.shared[w]; ok {
				a.off += int64(off)
			} else if n, err := strconv.ParseInt(w, 0, 64); err == nil {
				a.off += sign * n
			} else {
				a.name = w
			}
		}
		return a
	default:
		if r, ok := p.lookup(t); ok {
			return arg{kind: argReg, reg: r}
		}
		if off, ok := p.shared[t]; ok {
			return immediate(uint64(off))
		}
		if off, ok := p.consts[t]; ok {
			return immediate(uint64(off))
		}
		if v, ok := literal(t); ok {
			return immediate(v)
		}
		return arg{kind: argName, reg: -1, name: t}
	}
}

// literal reads a number: decimal, hex, octal, or the bits of a float as 0f3F800000 and 0d3FF0000000000000.
func literal(s string) (uint64, bool) {
	switch {
	case len(s) == 10 && (strings.HasPrefix(s, "0f") || strings.HasPrefix(s, "0F")):
		v, err := strconv.ParseUint(s[2:], 16, 32)
		return v, err == nil
	case len(s) == 18 && (strings.HasPrefix(s, "0d") || strings.HasPrefix(s, "0D")):
		v, err := strconv.ParseUint(s[2:], 16, 64)
		return v, err == nil
	}
	s = strings.TrimSuffix(s, "U")
	v, err := strconv.ParseUint(s, 0, 64)
	return v, err == nil
}
