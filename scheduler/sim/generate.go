package sim

import (
	"fmt"
	"math"
	"strings"
)

// A Profile is what is published of one cluster's GPU jobs. Source: AcmeTrace, cluster_summary.csv (Hu et al., NSDI'24,
// CC BY 4.0).
type Profile struct {
	Name                       string
	MeanRun, MedianRun, MaxRun float64 // seconds
	MeanGPUs, MaxGPUs          float64
}

// Profiles are the five clusters. PAI's jobs ask 0.68 GPUs on average: most share one.
var Profiles = []Profile{
	{"seren", 1414.335, 122, 1209604, 5.68, 1024},
	{"kalos", 1259.689, 124, 625740, 26.77, 1024},
	{"philly", 18006.055, 874, 4240676, 1.928, 128},
	{"helios", 6651.681, 206, 4320009, 3.716, 2048},
	{"pai", 4787.109, 480.667, 626371, 0.683, 8},
}

// FindProfile is the profile of that name.
func FindProfile(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("no profile %q; there are %s", name, strings.Join(names, ", "))
}

// Generate makes so many jobs like a cluster's, for a fleet of so many GPUs, eight to a node, at that load: what is asked to
// what there is.
//
// Run times are lognormal with the published mean and median, cut at the maximum. Sizes are powers of two up to the
// published maximum, or half the fleet, each less frequent than the one before by a constant factor that gives the published mean;
// above eight GPUs they are whole nodes. Jobs come by a Poisson process. Users ask twice to ten times what they need. What
// is not published, as how size and run time hang together or what a day looks like, is not in it.
func Generate(p Profile, jobs, gpus int, load float64, seed uint64) *Trace {
	c := chance(seed)
	sizes, weights := p.sizes(float64(gpus))
	sigma := math.Sqrt(2 * math.Log(p.MeanRun/p.MedianRun))
	t := &Trace{}
	work := 0.0
	for i := range jobs {
		run := int64(min(p.MaxRun, max(1, c.lognormal(p.MedianRun, sigma))))
		size := pick(&c, sizes, weights)
		j := Job{ID: int64(i + 1), User: fmt.Sprintf("user%02d", c.next()%40), Account: fmt.Sprintf("team%d", c.next()%8), Run: run, Nodes: 1}
		j.Limit = (int64(float64(run)*(2+8*c.unit()*c.unit())) + 899) / 900 * 900
		switch {
		case size < 1:
			j.Share = int(size * 100)
		case size <= 8:
			j.GPUs = int(size)
		default:
			j.Nodes, j.GPUs = int(size)/8, 8
		}
		work += size * float64(run)
		t.Jobs = append(t.Jobs, j)
	}
	mean := work / float64(gpus) / load / float64(jobs)
	at := 0.0
	for i := range t.Jobs {
		t.Jobs[i].Submit = int64(at)
		at += c.exponential(mean)
	}
	return t
}

// sizes are the sizes up to the maximum or half the fleet, and how frequent each is, so that the mean is p's.
func (p Profile) sizes(gpus float64) (sizes, weights []float64) {
	for s := 1.0; s <= min(p.MaxGPUs, max(1, gpus/2)); s *= 2 {
		sizes = append(sizes, s)
	}
	if p.MeanGPUs < 1 { // most share a GPU: a half, or a quarter
		sizes = append([]float64{0.25, 0.5}, sizes...)
	}
	mean := func(r float64) float64 {
		sum, total, w := 0.0, 0.0, 1.0
		for _, s := range sizes {
			sum, total, w = sum+w*s, total+w, w*r
		}
		return sum / total
	}
	lo, hi := 0.0, 4.0
	for range 60 {
		mid := (lo + hi) / 2
		if mean(mid) < p.MeanGPUs {
			lo = mid
		} else {
			hi = mid
		}
	}
	w := 1.0
	for range sizes {
		weights, w = append(weights, w), w*lo
	}
	return sizes, weights
}

func pick(c *chance, values, weights []float64) float64 {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	at := c.unit() * total
	for i, w := range weights {
		if at -= w; at < 0 {
			return values[i]
		}
	}
	return values[len(values)-1]
}
