package sim

import "math"

// A chance is a stream of pseudo-random numbers from a seed: splitmix64 (Steele, Lea, Flood, OOPSLA 2014). It is here so
// that a seed gives the same run with every version of Go.
type chance uint64

func (c *chance) next() uint64 {
	*c += 0x9e3779b97f4a7c15
	z := uint64(*c)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unit is uniform over (0, 1).
func (c *chance) unit() float64 { return (float64(c.next()>>11) + 0.5) / (1 << 53) }

// exponential has that mean.
func (c *chance) exponential(mean float64) float64 { return -math.Log(c.unit()) * mean }

// normal is standard normal (Box and Muller).
func (c *chance) normal() float64 {
	return math.Sqrt(-2*math.Log(c.unit())) * math.Cos(2*math.Pi*c.unit())
}

// lognormal has that median; sigma is the deviation of its logarithm.
func (c *chance) lognormal(median, sigma float64) float64 {
	return median * math.Exp(sigma*c.normal())
}
