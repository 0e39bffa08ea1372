package replay

import (
	"strings"
	"testing"
	"time"
)

func record() Record {
	return Record{Format: 1, Command: []string{"/opt/step"}, SHA256: "aa", By: "ops", At: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		Place: Place{Node: "gpu001", GPUs: []string{"H100"}, Driver: 12040}, Runs: 3, Digests: map[string]string{"1": "0123456789abcdef", "2": "00000000"}}
}

func TestJudge(t *testing.T) {
	here := Place{Node: "gpu002", GPUs: []string{"H100"}, Driver: 12040}
	good := []Run{{Seed: "1", Digest: "0123456789abcdef"}, {Seed: "2", Digest: "00000000"}}
	for _, tt := range []struct {
		name string
		sha  string
		here Place
		runs []Run
		want Outcome
		say  string
	}{
		{"all the same", "aa", here, good, Same, "2 of 2 digests"},
		{"one differs", "aa", here, []Run{good[0], {Seed: "2", Digest: "00000001"}}, Differs, "seed 2 gave 00000001 here, and 00000000 on node gpu001 on 2026-03-01 (by ops, 3 runs)"},
		{"one differs and one did not run", "aa", here, []Run{{Seed: "1", Err: "too slow"}, {Seed: "2", Digest: "00000001"}}, Differs, "seed 2"},
		{"one did not run", "aa", here, []Run{good[0], {Seed: "2", Err: "too slow"}}, NotShown, "seed 2: too slow"},
		{"none ran", "aa", here, nil, NotShown, "not run"},
		{"a seed that the record lacks", "aa", here, []Run{{Seed: "3", Digest: "00000000"}}, NotShown, "no digest"},
		{"another executable", "bb", here, good, NotShown, "record it anew"},
		{"another model", "aa", Place{GPUs: []string{"H200"}, Driver: 12040}, good, NotShown, "this node has H200"},
		{"another driver", "aa", Place{GPUs: []string{"H100"}, Driver: 12050}, []Run{{Seed: "2", Digest: "00000001"}}, NotShown, "CUDA driver 12040"},
		{"no GPU seen", "aa", Place{}, good, NotShown, "no GPU that was seen"},
	} {
		got, say := Judge(record(), tt.sha, tt.here, tt.runs)
		if got != tt.want || !strings.Contains(say, tt.say) {
			t.Errorf("%s: %v, %q", tt.name, got, say)
		}
	}
}

func TestDigest(t *testing.T) {
	for in, want := range map[string]string{"0123ABCD\n": "0123abcd", " 01234567 ": "01234567", "0123456": "", "": "", "01234567\n01234567": "", "digest: 01234567": "", strings.Repeat("a", 129): ""} {
		if got, err := Digest(in); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format":1,"command":["/s"],"sha256":"a","by":"b","at":"2026-03-01T00:00:00Z","place":{"node":"n","gpus":[],"driver":0},"runs":1,"digests":{"1":"01234567"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err == nil && (len(r.Digests) == 0 || r.By == "") {
			t.Errorf("%+v", r)
		}
	})
}
