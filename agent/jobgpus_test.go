package agent

import (
	"fmt"
	"testing"
)

func TestParseGPUs(t *testing.T) {
	for _, c := range []struct{ name, job, visible, want string }{
		{"a job without GPUs", "", "", "none"},
		{"CUDA's word for none", "", "NoDevFiles", "none"},
		{"indices", "0,3", "", "[0 3]"},
		{"a range", "0-3,7", "", "[0 1 2 3 7]"},
		{"twice and out of order", "3,0,3,0-1", "", "[0 1 3]"},
		{"SLURM_JOB_GPUS outranks the other", "2", "0", "[2]"},
		{"only the other", "", "4,5", "[4 5]"},
		{"blanks", " 1 , 2 ", "", "[1 2]"},
		{"a GPU's UUID", "GPU-0af1-22", "", "GPU-0af1-22"},
		{"a MIG name that holds the GPU's UUID", "", "MIG-GPU-0af1/3/0,MIG-GPU-0af1/4/0", "GPU-0af1"},
		{"a MIG UUID does not say which GPU", "", "MIG-4e0f4a5c-1111-5555-9999-aaaaaaaaaaaa", "unknown"},
		{"one bad item spoils the list", "0,x", "", "unknown"},
		{"a range backwards", "3-1", "", "unknown"},
		{"a range without end", "3-", "", "unknown"},
		{"negative", "-2", "", "unknown"},
		{"too large", "256", "", "unknown"},
		{"far too large", "99999999999999999999", "", "unknown"},
		{"a huge range", "0-99999999", "", "unknown"},
		{"shell", "0;rm -rf /", "", "unknown"},
		{"a path as UUID", "GPU-../../etc", "", "unknown"},
		{"empty item", "0,,1", "", "unknown"},
	} {
		s := ParseGPUs(c.job, c.visible)
		got := fmt.Sprint(s.Indices)
		switch {
		case s.Unknown:
			got = "unknown"
		case s.None():
			got = "none"
		case len(s.UUIDs) > 0:
			got = s.UUIDs[0]
		}
		if got != c.want {
			t.Errorf("%s: %q %q: got %s, want %s", c.name, c.job, c.visible, got, c.want)
		}
		if s.Unknown && (len(s.Indices) > 0 || len(s.UUIDs) > 0) {
			t.Errorf("%s: an unknown set still names %v %v", c.name, s.Indices, s.UUIDs)
		}
	}
}

func TestNewHookRequestLeavesJunkOut(t *testing.T) {
	r := NewHookRequest(Prolog, map[string]string{
		"SLURM_JOB_ID": "7; reboot", "SLURM_JOB_USER": "eve\n0", "SLURM_RESTART_COUNT": "-1", "SLURM_JOB_NUM_NODES": "4000000000", "SLURM_JOB_GPUS": "junk",
	})
	if r.Job.ID != "" || r.Job.User != "" || r.Job.Restarts != 0 || r.Job.Nodes != 0 || r.Job.GPUs != nil || !r.GPUs.Unknown {
		t.Fatalf("%+v", r)
	}
	r = NewHookRequest(Epilog, map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_RESTART_COUNT": "2", "SLURM_JOB_USER": "ann.smith@example"})
	if r.Job.ID != "7" || r.Job.Restarts != 2 || r.Job.User != "ann.smith@example" || !r.GPUs.None() {
		t.Fatalf("%+v", r)
	}
}

func FuzzParseGPUs(f *testing.F) {
	for _, s := range []string{"0-3,7", "GPU-0af1", "MIG-GPU-0af1/1/0", "MIG-x", "-", "0-", "999-0"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, job, visible string) {
		s := ParseGPUs(job, visible)
		if len(s.Indices) > maxGPUIndex+1 {
			t.Fatalf("%d indices", len(s.Indices))
		}
		for i, n := range s.Indices {
			if n < 0 || n > maxGPUIndex || i > 0 && s.Indices[i-1] >= n {
				t.Fatalf("indices %v", s.Indices)
			}
		}
	})
}
