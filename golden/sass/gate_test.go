package sass

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/golden/cubin"
	"github.com/assay-gpu/assay/golden/kernels"
)

var updateGate = flag.Bool("update-gate", false, "write the record and the machine code in golden/cubin anew")

const shelf = "../cubin" // where both are kept

// TestSASSGate assembles every kernel for every target that its tier allows, with each ptxas that takes its PTX, and holds
// the machine code to what the kernel declares, to the record, and to what is shipped.
func TestSASSGate(t *testing.T) {
	kits, err := FindForTest()
	if err != nil {
		t.Fatal(err)
	}
	if kits == nil {
		t.Skip("ptxas is not unpacked: make deps does that")
	}
	g := gate{t: t, shipped: map[string][]byte{}}
	for _, kit := range kits {
		for _, target := range []string{"sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"} {
			g.assemble(kit, target)
		}
	}
	if *updateGate {
		g.write()
		return
	}
	if want, err := os.ReadFile(filepath.Join(shelf, "gate.tsv")); err != nil || string(want) != g.record() {
		t.Errorf("golden/cubin/gate.tsv is not what the assembler gives (%v): look at the change, then make golden-cubins", err)
	}
	for _, k := range kernels.All() {
		for _, target := range cubin.Targets(k) {
			c, why := cubin.For(k, target.Capability)
			if now := g.shipped[k.ID+target.Name]; why != "" || now != nil && !bytes.Equal(c.Image, now) {
				t.Errorf("%s for %s: what is shipped is not what the assembler gives (%s): make golden-cubins", k.ID, target.Name, why)
			}
		}
	}
}

// A gate is what has been assembled so far.
type gate struct {
	t       *testing.T
	rows    []string
	shipped map[string][]byte // machine code by kernel and target
}

func (g *gate) record() string { return cubin.Heading + strings.Join(g.rows, "\n") + "\n" }

// write puts the record and the machine code of every kernel where they are shipped from. What PTX that did not change has
// become is left as it is.
func (g *gate) write() {
	g.t.Helper()
	kept := map[string]bool{}
	for _, k := range kernels.All() {
		var names []string
		var images [][]byte
		for _, target := range cubin.Targets(k) {
			names, images = append(names, target.Name), append(images, g.shipped[k.ID+target.Name])
		}
		file := filepath.Join(shelf, k.ID+".tar.gz")
		kept[file] = true
		was, _ := os.ReadFile(file) // none yet: then it is not the same
		same := was != nil
		for i, name := range names {
			b, err := cubin.Unpack(was, name)
			same = same && err == nil && bytes.Equal(b, images[i])
		}
		if same {
			continue // gzip of another Go may give other bytes for the same code
		}
		packed, err := cubin.Pack(names, images)
		if err == nil {
			err = os.WriteFile(file, packed, 0o644)
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(shelf, "gate.tsv"), []byte(g.record()), 0o644); err != nil {
		g.t.Fatal(err)
	}
	old, err := filepath.Glob(filepath.Join(shelf, "*.tar.gz"))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, file := range old {
		if !kept[file] {
			if err := os.Remove(file); err != nil {
				g.t.Fatal(err)
			}
		}
	}
}

// assemble adds the rows of all kernels for one target. They are disassembled together, since the disassembler takes longer to
// start than to read them all; the code that is shipped is of each by itself, and must be the same instructions.
func (g *gate) assemble(kit Toolkit, target string) {
	t := g.t
	t.Helper()
	var ks []kernels.Kernel
	var rows []string
	dir := t.TempDir()
	all := filepath.Join(dir, "all.cubin")
	args := []string{"-arch=" + target, "-o", all}
	capability := 0
	for _, k := range kernels.All() {
		for _, tg := range cubin.Targets(k) {
			if tg.Name != target || !cubin.Takes(kit.Version, k) {
				continue
			}
			if row, code, ok := unchanged(kit, k, tg); ok && *updateGate {
				rows = append(rows, row.String())
				g.shipped[k.ID+target] = code
			} else {
				ks, args, capability = append(ks, k), append(args, filepath.Join("../kernels", k.ID+".ptx")), tg.Capability
			}
		}
	}
	if len(ks) == 0 {
		g.rows = append(g.rows, rows...)
		return
	}
	ctx := context.Background()
	if out, err := kit.Run(ctx, "ptxas", args...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	together, err := os.ReadFile(all)
	if err != nil {
		t.Fatal(err)
	}
	image, err := cubin.Inspect(together)
	if err != nil {
		t.Fatal(err)
	}
	listing, err := kit.Run(ctx, "nvdisasm", "-c", all)
	if err != nil {
		t.Fatalf("%v\n%s", err, listing)
	}
	for _, k := range ks {
		file := filepath.Join(dir, k.ID+".cubin")
		// Of several files together ptxas puts shared memory to the wrong ones: each is asked for by itself.
		said, err := kit.Run(ctx, "ptxas", args[0], "-v", "-o", file, filepath.Join("../kernels", k.ID+".ptx"))
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		if !strings.Contains(string(said), "0 bytes spill stores, 0 bytes spill loads") {
			t.Errorf("ptxas %s %s spills %s:\n%s", kit.Version, target, k.ID, said)
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, g.row(kit, k, target, capability, image, code, string(listing)).String())
		if kit.Version == cubin.Shipped {
			g.shipped[k.ID+target] = code
		}
	}
	sort.Strings(rows)
	g.rows = append(g.rows, rows...)
}

// unchanged gives what is recorded and shipped of a kernel whose PTX is as it was.
func unchanged(kit Toolkit, k kernels.Kernel, target cubin.Target) (row cubin.Row, code []byte, ok bool) {
	row, ok = cubin.Lookup(k.ID, kit.Version, target.Name)
	if !ok || row.PTX != cubin.Digest([]byte(k.Source())) {
		return row, nil, false
	}
	c, why := cubin.For(k, target.Capability)
	return row, c.Image, why == ""
}

// row says what one kernel's machine code is. together is the image that the listing is of.
func (g *gate) row(kit Toolkit, k kernels.Kernel, target string, capability int, together cubin.Image, code []byte, listing string) cubin.Row {
	t := g.t
	t.Helper()
	alone, err := cubin.Inspect(code)
	if err != nil {
		t.Fatalf("ptxas %s %s %s: %v", kit.Version, k.ID, target, err)
	}
	f, ok := alone.Functions[k.ID]
	if !ok || alone.Capability != capability || alone.Exact != strings.HasSuffix(target, "a") || f.Local != 0 {
		t.Errorf("ptxas %s %s %s: the machine code says it is for %d, exactly: %t, with %d bytes of stack", kit.Version, k.ID, target, alone.Capability, alone.Exact, f.Local)
	}
	if !bytes.Equal(f.Text, together.Functions[k.ID].Text) {
		t.Errorf("ptxas %s %s %s: by itself it becomes other instructions than with the other kernels, which were looked at", kit.Version, k.ID, target)
	}
	_, text, ok := strings.Cut(listing, "\n.text."+k.ID+":\n")
	text, _, _ = strings.Cut(text, "\n//---")
	if !ok {
		t.Fatalf("nvdisasm %s %s: no %s", kit.Version, target, k.ID)
	}
	l, err := StepLoop(text, k, capability)
	if err != nil {
		t.Errorf("ptxas %s: %v", kit.Version, err)
	}
	for _, fault := range l.Faults(k, capability) {
		t.Errorf("ptxas %s: %s", kit.Version, fault)
	}
	var ops []string
	for _, o := range k.SASS {
		if capability >= o.From && capability <= o.To {
			ops = append(ops, fmt.Sprintf("%s=%d", o.Name, l.Of(o.Name)))
		}
	}
	return cubin.Row{Kernel: k.ID, PTX: cubin.Digest([]byte(k.Source())), Assembler: kit.Version, Target: target, Registers: f.Registers, Shared: f.Shared,
		Instructions: l.Instructions, Straight: l.Straight, Opcodes: strings.Join(ops, " "), Digest: cubin.Digest(code)}
}

const someSASS = `
		Function : k
        /*0000*/                   S2R R4, SR_TID.X ;                   /* 0x0000000000047919 */
        /*0010*/               @P0 BRA 0x40 ;                           /* 0x0000000000cc0947 */
        /*0020*/                   NANOSLEEP 0x3e8 ;                    /* 0x0 */
        /*0030*/              @!P0 BRA P1, 0x20 ;                       /* 0x0 */
        /*0040*/                   IMAD.WIDE.U32 R2, R4, R5, R6 ;       /* 0x0 */
        /*0050*/                   LOP3.LUT R2, R2, R3, RZ, 0x3c, !PT ; /* 0x0 */
        /*0060*/               @P0 BRA 0x40 ;                           /* 0x0 */
        /*0070*/                   EXIT ;                               /* 0x0 */
        /*0080*/                   BRA 0x80;                            /* 0x0 */
`

func TestStepLoop(t *testing.T) {
	k := kernels.Kernel{ID: "k", SASS: []kernels.Opcode{{From: 70, To: 90, Name: "IMAD.WIDE.U32", Count: 1}}}
	l, err := StepLoop(someSASS, k, 80)
	if err != nil || l.Instructions != 3 || !l.Straight || l.Of("LOP3") != 1 || len(l.Faults(k, 80)) != 0 {
		t.Errorf("%+v, %v, %v", l, err, l.Faults(k, 80))
	}
	k.SASS[0].Count = 2
	if f := l.Faults(k, 80); len(f) != 1 || !strings.Contains(f[0], "1 IMAD.WIDE.U32 a step, declared 2") {
		t.Errorf("%v", f)
	}
	k.SASS[0].Count = 0
	if f := l.Faults(k, 80); len(f) != 1 {
		t.Errorf("one more than declared passes: %v", f)
	}
	if f := l.Faults(k, 100); len(f) != 0 {
		t.Errorf("a target that nothing is declared for: %v", f)
	}
	k.SASS[0].Name = "HMMA"
	if _, err := StepLoop(someSASS, k, 80); err == nil {
		t.Error("a kernel whose opcode is nowhere passes")
	}
}
