package agent

import (
	"slices"
	"strconv"
	"strings"
)

// maxGPUIndex bounds a GPU index in a job's list. No node has more; a greater number is junk.
const maxGPUIndex = 255

// A GPUSet is the GPUs a job was given, as far as its environment says. The zero value is a job without GPUs.
type GPUSet struct {
	Unknown bool     // the list could not be read: the job may have any GPU, so count with all of them
	Indices []int    // as the driver counts them, ascending
	UUIDs   []string // named by UUID, sorted
}

// None reports whether the job has no GPU.
func (s GPUSet) None() bool { return !s.Unknown && len(s.Indices) == 0 && len(s.UUIDs) == 0 }

// ParseGPUs reads SLURM_JOB_GPUS, or where that is empty CUDA_VISIBLE_DEVICES: indices and ranges ("0,2-3"), GPU UUIDs
// and old-style MIG names ("MIG-GPU-<uuid>/1/0"), which hold the GPU's UUID. A new-style MIG UUID does not say which GPU it
// is on; that, and anything else, makes the set unknown. slurmd sets both, yet they are read as hostile.
func ParseGPUs(jobGPUs, visible string) GPUSet {
	list := strings.TrimSpace(jobGPUs)
	if list == "" {
		list = strings.TrimSpace(visible)
	}
	// CUDA's ways of saying "none".
	if list == "" || list == "NoDevFiles" || list == "-1" {
		return GPUSet{}
	}
	var s GPUSet
	for item := range strings.SplitSeq(list, ",") {
		if !s.add(strings.TrimSpace(item)) {
			return GPUSet{Unknown: true}
		}
	}
	slices.Sort(s.Indices)
	slices.Sort(s.UUIDs)
	s.Indices, s.UUIDs = slices.Compact(s.Indices), slices.Compact(s.UUIDs)
	return s
}

func (s *GPUSet) add(item string) bool {
	if strings.HasPrefix(item, "MIG-GPU-") {
		item, _, _ = strings.Cut(strings.TrimPrefix(item, "MIG-"), "/")
	}
	if rest, ok := strings.CutPrefix(item, "GPU-"); ok {
		if !plainUUID(rest) {
			return false
		}
		s.UUIDs = append(s.UUIDs, item)
		return true
	}
	first, last, isRange := strings.Cut(item, "-")
	if !isRange {
		last = first
	}
	a, ok1 := index(first)
	b, ok2 := index(last)
	if !ok1 || !ok2 || a > b {
		return false
	}
	for i := a; i <= b; i++ {
		s.Indices = append(s.Indices, i)
	}
	return true
}

// index reads a GPU index: one to three digits, no sign.
func index(t string) (int, bool) {
	if len(t) == 0 || len(t) > 3 || strings.Trim(t, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(t)
	return n, err == nil && n <= maxGPUIndex
}

func plainUUID(t string) bool {
	return len(t) > 0 && len(t) <= 64 && strings.Trim(strings.ToLower(t), "0123456789abcdef-") == ""
}
