package lifecycle

import (
	"maps"
	"slices"

	"github.com/assay-gpu/assay/coordinator/certificate"
)

// clone copies n as deep as Step changes it, so that the node given to Step stays as it was.
func clone(n Node) Node {
	n.Marks = maps.Clone(n.Marks)
	n.Holds = slices.Clone(n.Holds)
	n.Reasons = slices.Clone(n.Reasons)
	n.Jobs = slices.Clone(n.Jobs)
	n.Reboots = slices.Clone(n.Reboots)
	n.Past = slices.Clone(n.Past)
	n.PastBoots = slices.Clone(n.PastBoots)
	n.Observed = slices.Clone(n.Observed)
	if n.Certificate != nil {
		c := *n.Certificate
		n.Certificate = &c
	}
	if n.Case != nil {
		c := cloneCase(*n.Case)
		n.Case = &c
	}
	return n
}

func cloneCase(c Case) Case {
	c.Rungs = slices.Clone(c.Rungs)
	c.Sources = slices.Clone(c.Sources)
	c.GPUs = slices.Clone(c.GPUs)
	c.Faults = slices.Clone(c.Faults)
	return c
}

// Granted returns n with c, numbered and signed by the coordinator, in place of the certificate that Step issued.
func Granted(n Node, c certificate.Certificate) Node {
	n.Certificate = &c
	n.LastSerial = max(n.LastSerial, c.Serial)
	return n
}
