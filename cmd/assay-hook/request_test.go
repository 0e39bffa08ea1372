package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestRequest(t *testing.T) {
	got := string(request("epilog", []string{
		"PATH=/evil", "SLURM_JOB_COMMENT=0\n1\n", "SLURM_JOB_ID=42", "SLURM_JOB_ID=43", "SLURMD_NODENAME=gpu001",
		"SLURM_JOB_USER=eve\n\nASSAY1 status\n", "CUDA_VISIBLE_DEVICES=0,1\x1b[2J\x7f", "SLURM_JOB_GPUS=", "SLURM_JOB_IDX=1", "SLURM_JOB",
	}))
	want := "ASSAY1 epilog\nSLURMD_NODENAME=gpu001\nSLURM_JOB_ID=42\nSLURM_JOB_USER=eveASSAY1 status\nSLURM_JOB_GPUS=\nCUDA_VISIBLE_DEVICES=0,1[2J\n\n"
	if got != want {
		t.Errorf("request = %q, want %q", got, want)
	}
}

// Whatever the environment holds, the request stays a list of known names ended by the only empty line.
func FuzzRequest(f *testing.F) {
	f.Add("SLURM_JOB_ID", "42")
	f.Add("SLURM_JOB_USER", "a\n\n\x00b")
	f.Add("", strings.Repeat("x", 10_000))
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, n := range []string{name, "SLURM_JOB_NODELIST"} {
			req := request("prolog", []string{n + "=" + value})
			lines := bytes.Split(req, []byte("\n"))
			if len(lines) < 3 || string(lines[0]) != "ASSAY1 prolog" || len(lines[len(lines)-1]) != 0 || len(lines[len(lines)-2]) != 0 {
				t.Fatalf("request(%q) = %q", n+"="+value, req)
			}
			for _, line := range lines[1 : len(lines)-2] {
				key, v, ok := strings.Cut(string(line), "=")
				if !ok || !slices.Contains(passed[:], key) || len(v) > maxValue || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
					t.Fatalf("request(%q) has the line %q", n+"="+value, line)
				}
			}
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("a\nb\x1b[31m\u202e\u2028\xff", 10)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = min(max(limit, 0), 1<<12)
		got := clean(s, limit)
		if len(got) > limit || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x2028 }) {
			t.Fatalf("clean(%q, %d) = %q", s, limit, got)
		}
	})
}
