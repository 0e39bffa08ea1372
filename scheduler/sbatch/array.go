package sbatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bounds of an array: Slurm's default MaxArraySize is 1,001; ten times that is still little to keep.
const (
	MaxTasks = 10_000
	maxIndex = 4_000_000
)

// ParseArray reads what follows --array=: 0-15, 1,3,5-7, 0-100:10, and after % how many of them may run at once (0: all).
// Tasks come sorted, each once.
func ParseArray(s string) (tasks []int, throttle int, err error) {
	bad := func(format string, args ...any) ([]int, int, error) {
		return nil, 0, fmt.Errorf("array %.60q: %s", s, fmt.Sprintf(format, args...))
	}
	spec, most, limited := strings.Cut(s, "%")
	if limited {
		if throttle, err = strconv.Atoi(most); err != nil || throttle < 1 {
			return bad("want a number of 1 or more after %%")
		}
	}
	for part := range strings.SplitSeq(spec, ",") {
		span, by, stepped := strings.Cut(part, ":")
		first, last, ranged := strings.Cut(span, "-")
		if !ranged {
			last = first
		}
		lo, err := strconv.ParseUint(first, 10, 32)
		hi, err2 := strconv.ParseUint(last, 10, 32)
		step := uint64(1)
		if stepped {
			var err3 error
			if step, err3 = strconv.ParseUint(by, 10, 32); err3 != nil || step == 0 || !ranged {
				return bad("want a step of 1 or more after :, and a range before it")
			}
		}
		switch {
		case err != nil || err2 != nil:
			return bad("%q: want an index, or FIRST-LAST", part)
		case hi < lo:
			return bad("%q: it ends before it begins", part)
		case hi > maxIndex:
			return bad("index %d: at most %d", hi, maxIndex)
		case (hi-lo)/step >= MaxTasks:
			return bad("at most %d tasks", MaxTasks)
		}
		for i := lo; i <= hi; i += step {
			tasks = append(tasks, int(i))
		}
		if len(tasks) > 2*MaxTasks {
			return bad("at most %d tasks", MaxTasks)
		}
	}
	slices.Sort(tasks)
	if tasks = slices.Compact(tasks); len(tasks) > MaxTasks {
		return bad("at most %d tasks", MaxTasks)
	}
	return tasks, throttle, nil
}
