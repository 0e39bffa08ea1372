package policy

import (
	"fmt"
	"path"
	"time"
)

// Golden says when golden kernels run and which of their mismatches count.
type Golden struct {
	Screen         bool           `json:"screen" yaml:"screen"`                   // screens run a suite: prolog for quick and standard, soak and intake for their own levels
	Prolog         bool           `json:"prolog" yaml:"prolog"`                   // so does the quick suite of a prolog that the certificate alone does not let pass
	Size           string         `json:"size" yaml:"size"`                       // full; reduced is for simulated GPUs
	Within         Duration       `json:"within" yaml:"within"`                   // a prolog suite may take this long
	SoakFor        Duration       `json:"soak_for" yaml:"soak_for"`               // a soak goes on for so long; 0: once through all seeds
	NoLibrary      string         `json:"no_library" yaml:"no_library"`           // a node without libcuda.so.1: "unknown", or "not_applicable"
	TrustSimulated bool           `json:"trust_simulated" yaml:"trust_simulated"` // kernels count as of grade prod on simulated GPUs, and only there
	Corpora        string         `json:"corpora" yaml:"corpora"`                 // a folder on the nodes: screens also run the corpus of the day in it, and what is kept there; empty: none
	Records        []GoldenRecord `json:"records,omitempty" yaml:"records"`       // the site's own evidence for a grade
}

// Runs reports whether golden kernels run at all.
func (g Golden) Runs() bool { return g.Screen || g.Prolog }

// A GoldenRecord is a site's record of bit-equal runs of one kernel on healthy GPUs of one compute capability. With at least
// 3 GPUs in 2 nodes, 10,000 runs, cold and hot, and a name, it makes a mismatch of that kernel a fault there.
type GoldenRecord struct {
	Kernel     string `json:"kernel" yaml:"kernel"`         // digest of its code, as golden list shows it
	Capability int    `json:"capability" yaml:"capability"` // 10 · major + minor, as 90
	GPUs       int    `json:"gpus" yaml:"gpus"`
	Nodes      int    `json:"nodes" yaml:"nodes"`
	Runs       int    `json:"runs" yaml:"runs"`
	Cold       bool   `json:"cold" yaml:"cold"`
	Hot        bool   `json:"hot" yaml:"hot"`
	By         string `json:"by" yaml:"by"` // who stands for it, and where the runs are kept
}

// The time is that of the prolog's quick suite, which slurmd bounds at 20 s. A soak of an hour is the least that lets a GPU
// that computed wrong numbers back in: a defect that shows once in a hundred runs passes three reruns 97 times of a hundred.
func defaultGolden() Golden {
	return Golden{
		Size: "full", Within: Duration(14 * time.Second), NoLibrary: "not_applicable", SoakFor: hour,
	}
}

func (v *validator) golden(g Golden) {
	oneOf(v, "golden.size", g.Size, "full", "reduced")
	oneOf(v, "golden.no_library", g.NoLibrary, "unknown", "not_applicable")
	v.within("golden.within", g.Within, time.Second, time.Hour)
	v.within("golden.soak_for", g.SoakFor, 0, 8*time.Hour)
	if g.Corpora != "" && (g.Corpora[0] != '/' || path.Clean(g.Corpora) != g.Corpora) {
		v.add("golden.corpora", "%q: want a folder's whole path, as /var/lib/assay/corpora", g.Corpora)
	}
	for i, r := range g.Records {
		at := fmt.Sprintf("golden.records[%d]", i)
		if len(r.Kernel) != 32 {
			v.add(at+".kernel", "%q: want a kernel's digest, as golden list shows it", r.Kernel)
		}
		if r.Capability < 70 || r.Capability > 999 {
			v.add(at+".capability", "%d: want a compute capability, as 90 for 9.0", r.Capability)
		}
		if r.GPUs < 0 || r.Nodes < 0 || r.Runs < 0 {
			v.add(at, "counts below 0")
		}
		if r.By == "" {
			v.add(at+".by", "missing: who stands for this record?")
		}
	}
}
