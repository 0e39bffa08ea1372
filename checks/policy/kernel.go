package policy

import "strings"

// Kernel holds which taint flags count, by their letters.
type Kernel struct {
	FailTaints  string `json:"fail_taints" yaml:"fail_taints"`   // a soft Fail, reboot
	WatchTaints string `json:"watch_taints" yaml:"watch_taints"` // watched
}

// taintLetters are the flags Linux has, lowest bit first: Documentation/admin-guide/tainted-kernels.rst.
const taintLetters = "PFSRMBUDAWCIOELKXTNJ"

// defaultKernel: machine check, bad page, oops and soft lockup are faults; a warning is worth a look.
func defaultKernel() Kernel { return Kernel{FailTaints: "MBDL", WatchTaints: "W"} }

func (v *validator) kernel(k Kernel) {
	for _, f := range []struct{ path, letters string }{{"kernel.fail_taints", k.FailTaints}, {"kernel.watch_taints", k.WatchTaints}} {
		if strings.Trim(f.letters, taintLetters) != "" {
			v.add(f.path, "%q: want letters out of %s", f.letters, taintLetters)
		}
	}
}
