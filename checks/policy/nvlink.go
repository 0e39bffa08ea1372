package policy

// NVLink holds the limits of package nvlink.
type NVLink struct {
	Links               int     `json:"links" yaml:"links"`                                   // active links a GPU should have; 0: as its peers
	MaxCRCPerSecond     float64 `json:"max_crc_per_second" yaml:"max_crc_per_second"`         // a link; more is a soft Fail, drain
	MaxRetriesPerMinute float64 `json:"max_retries_per_minute" yaml:"max_retries_per_minute"` // replays and recoveries of a link; more is a soft Fail, drain
	MaxEffectiveBER     float64 `json:"max_effective_ber" yaml:"max_effective_ber"`           // of a link, after correction; more is a soft Fail, drain
}

// defaultNVLink: 100 CRC errors a second is DCGM's limit, a bit error rate of 1e-6 that of Azure cyclecloud-healthagent.
// DCGM warns of the first retry, which is watched here; a link that retries once a second is losing time, whatever the job.
func defaultNVLink() NVLink {
	return NVLink{Links: 0, MaxCRCPerSecond: 100, MaxRetriesPerMinute: 60, MaxEffectiveBER: 1e-6}
}

func (v *validator) nvlink(n NVLink) {
	atLeast(v, "nvlink.links", n.Links, 0)
	if n.Links > 36 { // NVML_NVLINK_MAX_LINKS
		v.add("nvlink.links", "%d: no GPU has more than 36", n.Links)
	}
	v.rate("nvlink.max_crc_per_second", n.MaxCRCPerSecond)
	v.rate("nvlink.max_retries_per_minute", n.MaxRetriesPerMinute)
	if !(n.MaxEffectiveBER > 0 && n.MaxEffectiveBER <= 1) {
		v.add("nvlink.max_effective_ber", "%v: want a rate above 0 and not above 1, as 1e-6", n.MaxEffectiveBER)
	}
}

// rate wants a number that is not below 0; NaN and infinity are none.
func (v *validator) rate(path string, got float64) {
	if !(got >= 0 && got <= 1e12) {
		v.add(path, "%v: want a number, 0 or more", got)
	}
}
