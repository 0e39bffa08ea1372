package policy

// Lemons says from where on what a node showed within 28 days makes it stand out: above the fleet's percentile of the signal,
// and above its floor, below which a node that is merely unlucky would stand out in a quiet fleet. Meta RSC, arXiv 2410.21680,
// takes thresholds from the fleet's own distribution, tuned by hand for precision; the floors are ours.
type Lemons struct {
	Percentile  float64 `json:"percentile" yaml:"percentile"`     // of the fleet, as a share: 0.99
	SmallFleet  int     `json:"small_fleet" yaml:"small_fleet"`   // nodes below which the floors alone count: a percentile of few is their worst
	XIDs        float64 `json:"xids" yaml:"xids"`                 // floors: a signal counts above them
	Tickets     float64 `json:"tickets" yaml:"tickets"`           // RMA tickets
	Outs        float64 `json:"outs" yaml:"outs"`                 // times out of service
	MultiFails  float64 `json:"multi_fails" yaml:"multi_fails"`   // failures of jobs of several nodes
	SingleFails float64 `json:"single_fails" yaml:"single_fails"` // failures of jobs of its own
	FailRate    float64 `json:"fail_rate" yaml:"fail_rate"`       // share of its own jobs that failed
}

func defaultLemons() Lemons {
	return Lemons{Percentile: 0.99, SmallFleet: 100, XIDs: 2, Tickets: 0, Outs: 1, MultiFails: 1, SingleFails: 1, FailRate: 0.1}
}

func (v *validator) lemons(l Lemons) {
	v.share("lemons.percentile", l.Percentile)
	atLeast(v, "lemons.small_fleet", l.SmallFleet, 1)
	atLeast(v, "lemons.xids", l.XIDs, 0)
	atLeast(v, "lemons.tickets", l.Tickets, 0)
	atLeast(v, "lemons.outs", l.Outs, 0)
	atLeast(v, "lemons.multi_fails", l.MultiFails, 0)
	atLeast(v, "lemons.single_fails", l.SingleFails, 0)
	atLeast(v, "lemons.fail_rate", l.FailRate, 0)
}
