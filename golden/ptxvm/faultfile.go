package ptxvm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Fault is one line of a fault file, version 1: what is broken, where, when, and what it does.
type Fault struct {
	V     int    `json:"v"`
	ID    string `json:"id"`
	Class string `json:"class"` // stuck transition bridge trigger multi warp addr control drop dup swap
	Where Where  `json:"where"`
	When  When   `json:"when"`
	Do    Do     `json:"do"`
	Seed  uint64 `json:"seed"`

	unit  Unit
	lanes uint32
	nth   uint64 // when not 0, the fault acts on its nth activation only: an upset
	only  string // when not "", it acts on this instruction only
}

// Where is the physical place.
type Where struct {
	SM   int             `json:"sm"`
	Part int             `json:"part"` // 0 to 3
	Unit string          `json:"unit"`
	Lane json.RawMessage `json:"lane"` // a number, "quad:n" or "all"
	Net  string          `json:"net,omitempty"`
}

// When is the condition under which the fault acts. Pairs are mask and value of an operand's low 32 bits.
type When struct {
	P       float64   `json:"p"` // probability per activation
	A       hexPair   `json:"a"`
	B       hexPair   `json:"b"`
	PrevOp  string    `json:"prev_op"`
	MinUtil float64   `json:"min_util"`
	TempC   []float64 `json:"temp_c"`
	MHz     []float64 `json:"mhz"`
	AfterS  float64   `json:"after_s"`
}

// Do is the effect.
type Do struct {
	And     uint32
	Or      uint32
	Xor     uint32
	AddrXor uint32
	Replace string // prev, lane:n, other_sm, zero, or nothing

	lane int // of lane:n, else -1
}

type hexPair [2]uint32

func (h *hexPair) UnmarshalJSON(b []byte) error {
	var s []string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("want [mask, value] as hex strings")
	}
	if s == nil {
		return nil
	}
	if len(s) != 2 {
		return fmt.Errorf("want [mask, value], have %d values", len(s))
	}
	for i := range s {
		v, err := hex32(s[i])
		if err != nil {
			return err
		}
		h[i] = v
	}
	if h[1]&^h[0] != 0 {
		return fmt.Errorf("value %08x has bits outside mask %08x: it never matches", h[1], h[0])
	}
	return nil
}

func hex32(s string) (uint32, error) {
	v, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%q: want 32 bits in hex", s)
	}
	return uint32(v), nil
}

// UnmarshalJSON reads the effect; an effect left out changes nothing.
func (d *Do) UnmarshalJSON(b []byte) error {
	raw := struct {
		And     *string `json:"and"`
		Or      *string `json:"or"`
		Xor     *string `json:"xor"`
		AddrXor *string `json:"addr_xor"`
		Replace string  `json:"replace"`
	}{}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	*d = Do{And: 0xFFFFFFFF, Replace: raw.Replace, lane: -1}
	for _, f := range []struct {
		s *string
		v *uint32
	}{{raw.And, &d.And}, {raw.Or, &d.Or}, {raw.Xor, &d.Xor}, {raw.AddrXor, &d.AddrXor}} {
		if f.s != nil {
			v, err := hex32(*f.s)
			if err != nil {
				return err
			}
			*f.v = v
		}
	}
	switch {
	case d.Replace == "" || d.Replace == "prev" || d.Replace == "zero" || d.Replace == "other_sm":
	case strings.HasPrefix(d.Replace, "lane:"):
		n, err := strconv.Atoi(d.Replace[5:])
		if err != nil || n < 0 || n > 31 {
			return fmt.Errorf("replace %q: want lane:0 to lane:31", d.Replace)
		}
		d.lane = n
	default:
		return fmt.Errorf("replace %q: want prev, lane:n, other_sm or zero", d.Replace)
	}
	return nil
}

// MarshalJSON writes the effect as it is read.
func (d Do) MarshalJSON() ([]byte, error) {
	m := map[string]string{}
	put := func(k string, v, not uint32) {
		if v != not {
			m[k] = fmt.Sprintf("%08x", v)
		}
	}
	put("and", d.And, 0xFFFFFFFF)
	put("or", d.Or, 0)
	put("xor", d.Xor, 0)
	put("addr_xor", d.AddrXor, 0)
	if d.Replace != "" {
		m["replace"] = d.Replace
	}
	return json.Marshal(m)
}

// MarshalJSON writes a pair as hex.
func (h hexPair) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]string{fmt.Sprintf("%08x", h[0]), fmt.Sprintf("%08x", h[1])})
}

var classes = map[string]bool{"stuck": true, "transition": true, "bridge": true, "trigger": true, "multi": true, "warp": true,
	"addr": true, "control": true, "drop": true, "dup": true, "swap": true}

var stems = map[string]bool{"mad": true, "fma": true, "add": true, "mul": true, "ld": true, "st": true, "mma": true, "shfl": true,
	"bar": true, "lop3": true, "shl": true, "cvt": true, "rcp": true}

// ParseFaults reads a fault file: JSON Lines. A field that it does not know, or a line that is not whole, refuses the file.
func ParseFaults(data []byte) ([]Fault, error) {
	var out []Fault
	ids := map[string]bool{}
	for n, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		f, err := parseFault(line)
		if err == nil && ids[f.ID] {
			err = fmt.Errorf("id %q: twice", f.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("faults, line %d: %w", n+1, err)
		}
		ids[f.ID] = true
		out = append(out, f)
	}
	return out, nil
}

func parseFault(line []byte) (Fault, error) {
	f := Fault{When: When{P: 1}, Do: Do{And: 0xFFFFFFFF, lane: -1}}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return f, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return f, fmt.Errorf("more than one value")
	}
	switch {
	case f.V != 1:
		return f, fmt.Errorf("v %d: want 1", f.V)
	case f.ID == "":
		return f, fmt.Errorf("id: missing")
	case !classes[f.Class]:
		return f, fmt.Errorf("class %q is not known", f.Class)
	case f.Where.Part < 0 || f.Where.Part > 3:
		return f, fmt.Errorf("part %d: want 0 to 3", f.Where.Part)
	case f.Where.SM < 0:
		return f, fmt.Errorf("sm %d: want 0 or more", f.Where.SM)
	case f.When.P < 0 || f.When.P > 1:
		return f, fmt.Errorf("p %g: want 0 to 1", f.When.P)
	case f.When.PrevOp != "" && !stems[f.When.PrevOp]:
		return f, fmt.Errorf("prev_op %q is not known", f.When.PrevOp)
	case len(f.When.TempC) != 0 && len(f.When.TempC) != 2, len(f.When.MHz) != 0 && len(f.When.MHz) != 2:
		return f, fmt.Errorf("temp_c and mhz: want [low, high]")
	}
	for u := noUnit + 1; u < units; u++ {
		if unitNames[u] == f.Where.Unit {
			f.unit = u
		}
	}
	if f.unit == noUnit {
		return f, fmt.Errorf("unit %q is not known", f.Where.Unit)
	}
	return f, f.readLane()
}

func (f *Fault) readLane() error {
	f.lanes = 0xFFFFFFFF
	if f.Where.Lane == nil {
		return nil
	}
	var n int
	if json.Unmarshal(f.Where.Lane, &n) == nil {
		if n < 0 || n > 31 {
			return fmt.Errorf("lane %d: want 0 to 31", n)
		}
		f.lanes = 1 << n
		return nil
	}
	var s string
	if err := json.Unmarshal(f.Where.Lane, &s); err != nil {
		return fmt.Errorf("lane: want a number, \"quad:n\" or \"all\"")
	}
	if s == "all" {
		return nil
	}
	q, err := strconv.Atoi(strings.TrimPrefix(s, "quad:"))
	if !strings.HasPrefix(s, "quad:") || err != nil || q < 0 || q > 7 {
		return fmt.Errorf("lane %q: want a number, \"quad:0\" to \"quad:7\" or \"all\"", s)
	}
	f.lanes = 0xF << (4 * q)
	return nil
}

// Unit is the fault's pipe or memory.
func (f *Fault) Unit() Unit { return f.unit }

// Lanes are those it can strike.
func (f *Fault) Lanes() uint32 { return f.lanes }

// Upset gives the fault as one that acts a single time, on the nth result of an instruction, as mad.wide.u32, counted
// from 1 at its place.
func (f Fault) Upset(instruction string, nth uint64) Fault {
	f.only, f.nth = instruction, nth
	return f
}
