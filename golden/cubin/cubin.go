// Package cubin holds the audited machine code of the golden kernels: what ptxas 12.4 makes of each kernel's PTX for every
// target that its tier allows, and the record of the gate that has looked at it (golden/sass).
//
// The code for a GPU's own target is better than PTX: it is what was looked at, no driver's optimiser comes between, and it
// needs no compiler at run time. Other targets run the PTX, which their driver assembles, unaudited.
//
// It is pure: all is embedded.
package cubin

import (
	"embed"
	"fmt"

	"github.com/assay-gpu/assay/golden/kernels"
)

//go:generate make -C ../.. golden-cubins

//go:embed *.tar.gz
var files embed.FS

// A Code is machine code with what the gate has found in it.
type Code struct {
	Row
	Image []byte // an ELF file, as ptxas wrote it
}

// For gives a kernel's machine code for a compute capability. why says why there is none; then the driver has to assemble the
// PTX. It has been held to the digest in the gate's record.
func For(k kernels.Kernel, capability int) (c Code, why string) {
	if k.Code != "" {
		return c, "no machine code is shipped for programs of a corpus"
	}
	for _, t := range Targets(k) {
		if t.Capability == capability {
			return of(k, t)
		}
	}
	return c, fmt.Sprintf("no machine code is shipped for compute capability %d.%d", capability/10, capability%10)
}

func of(k kernels.Kernel, t Target) (c Code, why string) {
	row, ok := Lookup(k.ID, Shipped, t.Name)
	switch {
	case !ok:
		return c, fmt.Sprintf("the gate has no record of it for %s", t.Name)
	case row.PTX != Digest([]byte(k.Source())):
		return c, fmt.Sprintf("the gate's record for %s is of other PTX", t.Name)
	}
	c.Row = row
	packed, err := files.ReadFile(k.ID + ".tar.gz")
	if err == nil {
		c.Image, err = Unpack(packed, t.Name)
	}
	if err != nil {
		return c, fmt.Sprintf("its machine code for %s cannot be read: %v", t.Name, err)
	}
	if got := Digest(c.Image); got != row.Digest {
		return c, fmt.Sprintf("its machine code for %s is not what was audited: digest %s, the gate's record says %s", t.Name, got, row.Digest)
	}
	return c, ""
}

// Of gives the record of machine code by its digest: which kernel's it is.
func Of(digest string) (Row, bool) {
	for _, r := range record() {
		if r.Assembler == Shipped && r.Digest == digest {
			return r, true
		}
	}
	return Row{}, false
}
