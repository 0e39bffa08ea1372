package policy

import "time"

// Certificate holds lifetimes by level and the extra time that hooks, never placement, still accept.
type Certificate struct {
	QuickMIG Duration `json:"quick_mig" yaml:"quick_mig"`
	Quick    Duration `json:"quick" yaml:"quick"`
	Standard Duration `json:"standard" yaml:"standard"`
	Soak     Duration `json:"soak" yaml:"soak"`
	Intake   Duration `json:"intake" yaml:"intake"`
	Grace    Duration `json:"grace" yaml:"grace"`
}

func defaultCertificate() Certificate {
	return Certificate{
		QuickMIG: 12 * hour, Quick: 12 * hour, Standard: 24 * hour, Soak: 7 * 24 * hour, Intake: 30 * 24 * hour, Grace: 12 * hour,
	}
}

func (v *validator) certificate(c Certificate) {
	for _, f := range []struct {
		path string
		d    Duration
	}{
		{"certificate.quick_mig", c.QuickMIG}, {"certificate.quick", c.Quick}, {"certificate.standard", c.Standard}, {"certificate.soak", c.Soak},
		{"certificate.intake", c.Intake},
	} {
		v.within(f.path, f.d, time.Second, 365*day)
	}
	v.within("certificate.grace", c.Grace, 0, 30*day)
}
