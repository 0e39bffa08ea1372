package policy

import "math"

// Bandwidth holds the limits of package bandwidth.
type Bandwidth struct {
	MinShare  float64 `json:"min_share" yaml:"min_share"`   // of what the link's generation and width give: less, either way, is a soft Fail, drain
	PeerShare float64 `json:"peer_share" yaml:"peer_share"` // of what the same product's GPUs on the node give: less is a soft Fail, drain
	MinGBps   float64 `json:"min_gbps" yaml:"min_gbps"`     // 10^9 bytes a second, each way: less is a soft Fail, drain. 0: no such limit
}

// defaultBandwidth: Azure/azurehpc-health-checks replaces nodes below 23 GB/s (A100, Gen 4 x16 gives 31.5), 48 (H100, Gen 5
// x16 gives 63) and 55 GB/s (H200): 73, 76 and 87 %. Healthy ones reach 79 % (A100) and 88 % (H100, nvbandwidth). 70 % lies
// below all of these, and above the 50 % of a link of half the width or speed. GPUs of one node differ by a few percent; a
// fifth less than the others is no chance.
func defaultBandwidth() Bandwidth { return Bandwidth{MinShare: 0.7, PeerShare: 0.8, MinGBps: 0} }

func (v *validator) bandwidth(b Bandwidth) {
	v.share("bandwidth.min_share", b.MinShare)
	v.share("bandwidth.peer_share", b.PeerShare)
	if !(b.MinGBps >= 0) || math.IsInf(b.MinGBps, 0) {
		v.add("bandwidth.min_gbps", "%v: want 10^9 bytes a second, or 0 for no limit", b.MinGBps)
	}
}
