package sim

import "math"

// Faults says what breaks and what is then seen of it. The zero value breaks nothing. Rates are per node of eight GPUs.
type Faults struct {
	PerDay   float64 // faults a node a day
	Lemons   float64 // share of nodes that fail far more often
	LemonX   float64 // how many times more often
	Growth   float64 // how many times more often a node fails by its 20th incident
	Median   float64 // days of a repair: lognormal
	Sigma    float64
	Unfixed  float64 // share of repairs after which the fault is still there
	BadAtDay float64 // share of nodes bad when delivered

	SDCPerDay float64 // a node begins to compute wrongly, a day
	SDCCaught float64 // share of those that a golden test can catch
	SDCFound  float64 // days until people find one without a test

	// Gating: a node takes work only with a certificate. A screen follows each repair and delivery and takes Screen seconds;
	// it finds what is still broken with probability Coverage. Golden tests look for wrong results every Interval seconds.
	Gating   bool
	Coverage float64
	Screen   int64
	Interval int64
}

// DefaultFaults are the published figures: 4 faults per 1,000 node-days, repairs of which 38 % take more than a day and 10 %
// more than 14, a rate 4.7 times as high by the 20th incident, 1.2 % lemons that touch 13 % of what runs, 0.1 wrong-result
// nodes per 1,000 node-days of which a short golden test catches 40 % at most, 1 % bad at delivery (Meta RSC, Anubis, Llama 3,
// ByteDance AEGIS).
//
// Three figures are assumptions, since nobody has published them: 30 % of repairs do not fix the fault at first, screens find
// 95 % of what is broken outright, and without tests a node that computes wrongly is found after 30 days.
func DefaultFaults() Faults {
	// A lognormal of days with P(x > 1) = 0.38 and P(x > 14) = 0.10: quantiles 0.3055 and 1.2816 of the normal.
	sigma := math.Log(14) / (1.2816 - 0.3055)
	return Faults{PerDay: 0.004, Lemons: 0.012, LemonX: 0.13 / 0.012, Growth: 4.7, Median: math.Exp(-0.3055 * sigma), Sigma: sigma, Unfixed: 0.3, BadAtDay: 0.01,
		SDCPerDay: 0.0001, SDCCaught: 0.4, SDCFound: 30, Coverage: 0.95, Screen: 1800, Interval: 24 * 3600}
}

// A health is what is true of a node, whether anybody knows it or not.
type health struct {
	lemon     bool
	incidents int
	broken    bool  // work dies on it within minutes
	wrongFrom int64 // since when it computes wrongly; 0: it does not
	catchable bool  // a golden test would see it
	down      bool  // out of service
}

// nextFault is the seconds until a node's next fault.
func (f *Faults) nextFault(c *chance, h *health) int64 {
	if f.PerDay <= 0 {
		return never
	}
	rate := f.PerDay * math.Pow(max(1, f.Growth), float64(min(h.incidents, 20))/20)
	if h.lemon {
		rate *= max(1, f.LemonX)
	}
	return seconds(c.exponential(1 / rate))
}

// repair is the seconds that a repair takes.
func (f *Faults) repair(c *chance) int64 { return seconds(min(c.lognormal(f.Median, f.Sigma), 90)) }

// seconds is days in seconds.
func seconds(days float64) int64 { return max(1, int64(days*86400)) }

const never = math.MaxInt64 / 4
