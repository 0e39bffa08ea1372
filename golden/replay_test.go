package golden

import (
	"reflect"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/golden/kernels"
)

func replayed() Replay {
	k, _ := kernels.Lookup("k18_mma_f16")
	return Replay{Kernel: k.ID, Code: KernelDigest(k), Size: "full", Seed: 63, SM: 131,
		Where: &Origin{Step: 3, Thread: 45, Partition: 1, Lane: 13, Word: 6, Expected: 0xDEADBEEF, Got: 1}}
}

func TestAReplayReadsBack(t *testing.T) {
	p := replayed()
	for range 2 {
		got, err := ParseReplay(p.String())
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: %+v, %v", p, got, err)
		}
		p.Where = nil
	}
	good := replayed().String()
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "name=value"},
		{"a part twice", good + ",sm=3", "each name once"},
		{"a part that is none", good + ",lane=3", "no such part"},
		{"other code", strings.Replace(good, "code=", "code=00", 1), "would not be the same run"},
		{"no kernel of that name", strings.Replace(good, "k18_mma_f16", "k99", 1), "none of that name"},
		{"a kernel's number is not its name", strings.Replace(good, "k18_mma_f16", "K18", 1), "none of that name"},
		{"a seed without a golden", strings.Replace(good, "seed=63", "seed=64", 1), "seed from 0 to 63"},
		{"no SM", strings.Replace(good, "sm=131,", "", 1), "an SM"},
		{"an odd size", strings.Replace(good, "size=full", "size=huge", 1), "huge"},
		{"half a place", strings.Replace(good, ",word=6", "", 1), "come together"},
		{"a negative step", strings.Replace(good, "step=3", "step=-3", 1), "out of range"},
		{"no hex", strings.Replace(good, "got=00000001", "got=one", 1), "invalid syntax"},
	} {
		if _, err := ParseReplay(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func FuzzReplay(f *testing.F) {
	f.Add(replayed().String())
	f.Add("kernel=,code=,size=,seed=,sm=")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseReplay(text)
		if err != nil {
			return
		}
		if again, err := ParseReplay(p.String()); err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%q reads as %+v, which does not read back: %v", text, p, err)
		}
	})
}

func TestAgain(t *testing.T) {
	p := replayed()
	p.SM = 1
	result := func(change func(s *Stage)) Result {
		r := whole()
		s := &r.Stages[0]
		s.Kernel, s.Digest, s.Seed = p.Kernel, p.Code, p.Seed
		change(s)
		return r
	}
	bad := func(s *Stage) {
		where := *p.Where
		s.SMs[1] = SM{SM: 1, Mismatch: &Mismatch{Where: &where}}
	}
	for _, tt := range []struct {
		name             string
		change           func(s *Stage)
		wrong, same, ran bool
	}{
		{"the same word of the same step", bad, true, true, true},
		{"another word", func(s *Stage) { bad(s); s.SMs[1].Mismatch.Where.Word++ }, true, false, true},
		{"wrong, and not localised", func(s *Stage) { bad(s); s.SMs[1].Mismatch.Where = nil }, true, false, true},
		{"right this time", func(*Stage) {}, false, false, true},
		{"wrong on another SM", func(s *Stage) { bad(s); s.SMs[0], s.SMs[1] = s.SMs[1], s.SMs[0]; s.SMs[0].SM, s.SMs[1].SM = 0, 1 }, false, false, true},
		{"another seed", func(s *Stage) { bad(s); s.Seed++ }, false, false, false},
		{"the SM was not reached", func(s *Stage) { s.SMs = s.SMs[:1] }, false, false, false},
		{"the canary was not seen", func(s *Stage) { s.Canary.Seen = false }, false, false, false},
	} {
		if wrong, same, ran := p.Again(result(tt.change)); wrong != tt.wrong || same != tt.same || ran != tt.ran {
			t.Errorf("%s: %t %t %t", tt.name, wrong, same, ran)
		}
	}
}
