package campaign

import (
	"math"
	"slices"
)

// A Share is how many of a stratum's faults were seen, with its bounds. A fault counts when it corrupts a workload. Those that
// ended in an error, corrupt nothing, or are not modelled stand apart.
type Share struct {
	Stratum     string  `json:"stratum"`
	Detected    int     `json:"detected"` // of those that count
	Missed      int     `json:"missed"`
	Extra       int     `json:"detected_uncounted"` // seen, and no workload is corrupted
	DUE         int     `json:"due"`
	Idle        int     `json:"benign"`
	NotModelled int     `json:"not_modelled"`
	Located     int     `json:"located"` // SM, partition and lane all right
	Rate        float64 `json:"rate"`    // of detected among detected and missed
	Low         float64 `json:"low"`     // Clopper-Pearson, 95 %
	High        float64 `json:"high"`
}

// Summarise counts lines by stratum, in alphabetical order.
func Summarise(lines []Line) []Share {
	by := map[string]*Share{}
	var names []string
	for _, l := range lines {
		name := Stratum(l)
		s := by[name]
		if s == nil {
			s = &Share{Stratum: name}
			by[name] = s
			names = append(names, name)
		}
		switch l.Outcome {
		case Detected:
			if l.Workload == "" {
				s.Extra++
				continue
			}
			s.Detected++
			if p := l.Located; p != nil && p.SM && p.Partition && p.Lane {
				s.Located++
			}
		case Missed:
			s.Missed++
		case DUE:
			s.DUE++
		case Idle:
			s.Idle++
		default:
			s.NotModelled++
		}
	}
	slices.Sort(names)
	var out []Share
	for _, n := range names {
		s := by[n]
		if all := s.Detected + s.Missed; all > 0 {
			s.Rate = float64(s.Detected) / float64(all)
			s.Low, s.High = ClopperPearson(s.Detected, all)
		} else {
			s.High = 1
		}
		out = append(out, *s)
	}
	return out
}

// ClopperPearson gives the exact 95 % bounds on a probability of which k of n trials were seen.
func ClopperPearson(k, n int) (low, high float64) {
	const tail = 0.025
	low, high = 0, 1
	if k > 0 {
		low = solve(func(p float64) bool { return 1-cdf(k-1, n, p) > tail })
	}
	if k < n {
		high = solve(func(p float64) bool { return cdf(k, n, p) < tail })
	}
	return low, high
}

// solve finds the p from which on f holds.
func solve(f func(p float64) bool) float64 {
	lo, hi := 0.0, 1.0
	for range 60 {
		mid := (lo + hi) / 2
		if f(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// cdf is the probability of at most k of n.
func cdf(k, n int, p float64) float64 {
	if p <= 0 {
		return 1
	}
	if p >= 1 {
		if k >= n {
			return 1
		}
		return 0
	}
	lgN, _ := math.Lgamma(float64(n + 1))
	sum := 0.0
	for i := 0; i <= k; i++ {
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(lgN - a - b + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}
