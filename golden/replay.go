package golden

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/golden/kernels"
)

// A Replay is one wrong result to be had again: the code, the size and the seed fix every operand, and the rest says what was
// seen. Its text is one word for a command line.
type Replay struct {
	Kernel string
	Code   string // digest of the kernel's code
	Size   string
	Seed   int
	SM     int
	Where  *Origin // Step, Thread, Word, Expected and Got of it; nil when it was not localised
}

// ReplayOf is how the wrong result of a stage on an SM is had again.
func ReplayOf(r Result, s Stage, sm SM) Replay {
	p := Replay{Kernel: s.Kernel, Code: s.Digest, Size: r.Size, Seed: s.Seed, SM: sm.SM}
	if sm.Mismatch != nil {
		p.Where = sm.Mismatch.Where
	}
	return p
}

func (p Replay) String() string {
	t := fmt.Sprintf("kernel=%s,code=%s,size=%s,seed=%d,sm=%d", p.Kernel, p.Code, p.Size, p.Seed, p.SM)
	if w := p.Where; w != nil {
		t += fmt.Sprintf(",step=%d,thread=%d,word=%d,expected=%08x,got=%08x", w.Step, w.Thread, w.Word, w.Expected, w.Got)
	}
	return t
}

// ParseReplay reads what String writes. The error says which part is wrong; code that this program does not have is one.
func ParseReplay(text string) (Replay, error) {
	p := Replay{Seed: -1, SM: -1}
	var w Origin
	number := map[string]*int{"seed": &p.Seed, "sm": &p.SM, "step": &w.Step, "thread": &w.Thread, "word": &w.Word}
	hex := map[string]*uint32{"expected": &w.Expected, "got": &w.Got}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || seen[name] {
			return p, fmt.Errorf("replay: %q: want name=value, each name once", part)
		}
		seen[name] = true
		var err error
		switch {
		case name == "kernel":
			p.Kernel = value
		case name == "code":
			p.Code = value
		case name == "size":
			p.Size = value
		case number[name] != nil:
			if *number[name], err = strconv.Atoi(value); err == nil && (*number[name] < 0 || *number[name] > 1<<20) {
				err = fmt.Errorf("out of range")
			}
		case hex[name] != nil:
			var v uint64
			v, err = strconv.ParseUint(value, 16, 32)
			*hex[name] = uint32(v)
		default:
			err = fmt.Errorf("no such part")
		}
		if err != nil {
			return p, fmt.Errorf("replay: %s: %w", part, err)
		}
	}
	k, ok := kernels.Lookup(p.Kernel)
	switch {
	case !ok || k.ID != p.Kernel:
		return p, fmt.Errorf("replay: kernel %q: this program has none of that name", p.Kernel)
	case p.Code != KernelDigest(k):
		return p, fmt.Errorf("replay: code %q: %s is %s in this program, which would not be the same run", p.Code, k.ID, KernelDigest(k))
	case p.Seed < 0 || p.Seed >= Seeds || p.SM < 0:
		return p, fmt.Errorf("replay: want a seed from 0 to %d and an SM", Seeds-1)
	}
	if _, err := SizeOf(p.Size); err != nil {
		return p, fmt.Errorf("replay: %w", err)
	}
	if n := count(seen, "step", "thread", "word", "expected", "got"); n == 5 {
		w.Partition, w.Lane = w.Thread/32%Partitions, w.Thread%32
		p.Where = &w
	} else if n != 0 {
		return p, fmt.Errorf("replay: step, thread, word, expected and got come together or not at all")
	}
	return p, nil
}

func count(seen map[string]bool, names ...string) int {
	n := 0
	for _, name := range names {
		if seen[name] {
			n++
		}
	}
	return n
}

// Again says what became of it in a run: whether the SM was wrong again and, when so, whether in the same word of the same
// step. ran is false when the run proves nothing of that SM.
func (p Replay) Again(r Result) (wrong, same, ran bool) {
	for _, s := range r.Stages {
		if s.Kernel != p.Kernel || s.Digest != p.Code || s.Seed != p.Seed {
			continue
		}
		for _, m := range s.SMs {
			switch {
			case m.SM != p.SM:
			case m.Mismatch != nil:
				w := m.Mismatch.Where
				same = w != nil && p.Where != nil && w.Step == p.Where.Step && w.Thread == p.Where.Thread && w.Word == p.Where.Word &&
					w.Expected == p.Where.Expected && w.Got == p.Where.Got
				return true, same, true
			case m.Verified > 0 && s.Err == "" && s.Canary.Seen:
				ran = true
			}
		}
	}
	return false, false, ran
}
