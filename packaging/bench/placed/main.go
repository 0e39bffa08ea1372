// Placed says how good the placements of a log are: waits, bounded slowdown, utilisation and leaf switches, by the same rules as
// assay sim. It reads one job a line, in any order, from standard input,
//
//	SUBMIT START END RUN GPUS NODELIST
//
// times in seconds, RUN what the job needed, GPUS on each node, and writes one line. A leaf is LEAF nodes, in the order of
// their numbers: n001 to n016 hang under the first leaf of 16.
//
//	placed NODES GPUS LEAF < LOG
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks/hostlist"
)

func main() {
	var fleet [3]int
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: placed NODES GPUS LEAF < LOG")
		os.Exit(64)
	}
	for i := range fleet {
		n, err := strconv.Atoi(os.Args[i+1])
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "placed: %q: want a number above 0\n", os.Args[i+1])
			os.Exit(64)
		}
		fleet[i] = n
	}
	jobs, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "placed:", err)
		os.Exit(1)
	}
	fmt.Println(score(jobs, fleet[0], fleet[1], fleet[2]))
}

type job struct {
	submit, start, end, run float64
	gpus                    int
	nodes                   []int // from 0
}

func read(r io.Reader) ([]job, error) {
	var jobs []job
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for at := 1; lines.Scan(); at++ {
		var j job
		var list string
		if _, err := fmt.Sscan(lines.Text(), &j.submit, &j.start, &j.end, &j.run, &j.gpus, &list); err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", at, lines.Text(), err)
		}
		names, err := hostlist.Expand(list)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		for _, name := range names {
			n, err := strconv.Atoi(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz"))
			if err != nil {
				return nil, fmt.Errorf("line %d: node %s has no number: %w", at, name, err)
			}
			j.nodes = append(j.nodes, n-1)
		}
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 && lines.Err() == nil {
		return nil, fmt.Errorf("no job in what was read")
	}
	return jobs, lines.Err()
}

// score replays the log: what ends in a second frees its GPUs before what starts in it is looked at.
func score(jobs []job, nodes, gpus, leaf int) string {
	type event struct {
		at    float64
		start bool
		job   *job
	}
	var events []event
	first, last := jobs[0].submit, jobs[0].submit
	for i := range jobs {
		j := &jobs[i]
		first, last = min(first, j.submit), max(last, j.submit)
		events = append(events, event{j.start, true, j}, event{j.end, false, j})
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(order(a.start), order(b.start))
	})
	free := make([]int, nodes)
	for i := range free {
		free[i] = gpus
	}
	leaves := (nodes + leaf - 1) / leaf
	var used, bound, reach, gangs int
	var busy, slow, wait float64
	var waits []float64
	for _, e := range events {
		j := e.job
		if !e.start {
			for _, n := range j.nodes {
				free[n] += j.gpus
			}
			continue
		}
		if len(j.nodes) > 1 {
			room, touched := make([]int, leaves), map[int]bool{}
			for n, f := range free {
				if f >= j.gpus {
					room[n/leaf]++
				}
			}
			for _, n := range j.nodes {
				touched[n/leaf] = true
			}
			slices.Sort(room)
			fewest := 0
			for left := len(j.nodes); left > 0 && fewest < leaves; fewest++ {
				left -= room[leaves-1-fewest]
			}
			gangs++
			used, bound, reach = used+len(touched), bound+(len(j.nodes)+leaf-1)/leaf, reach+min(fewest, len(touched))
		}
		for _, n := range j.nodes {
			free[n] -= j.gpus
		}
		w := max(0, j.start-j.submit)
		waits = append(waits, w)
		wait += w
		slow += max(1, (w+j.run)/max(j.run, 10))
		busy += float64(len(j.nodes)*j.gpus) * max(0, min(j.end, last)-min(j.start, last))
	}
	slices.Sort(waits)
	n := float64(len(jobs))
	ratio := func(a, b int) float64 { return float64(a) / float64(max(1, b)) }
	return fmt.Sprintf("jobs %d, gangs %d, mean wait %.1f s, p95 wait %.0f s, bounded slowdown %.2f, utilisation %.1f %%, leaves %d: %.3f over fewest on an empty fleet, %.3f over fewest then free",
		len(jobs), gangs, wait/n, waits[int(0.95*(n-1))], slow/n, 100*busy/(float64(nodes*gpus)*max(1, last-first)), used, ratio(used, bound), ratio(used, reach))
}

func order(start bool) int {
	if start {
		return 1
	}
	return 0
}
