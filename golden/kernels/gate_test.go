package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
)

var updateGate = flag.Bool("update-gate", false, "write gate.tsv anew")

// TestSASSGate assembles every kernel for every target that its tier allows, with each ptxas that takes its PTX, and holds
// the machine code to what the kernel declares and to the record in gate.tsv.
func TestSASSGate(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(cache, "assay", "cuda")
	must := os.Getenv("SASS_GATE") != "" || os.Getenv("CI") == "true"
	var rows []string
	kept, _ := os.ReadFile("gate.tsv") // the record so far, if there is one
	for _, version := range []string{"11.8", "12.4"} {
		bin := filepath.Join(cache, version, "bin")
		if _, err := os.Stat(filepath.Join(bin, "ptxas")); err != nil {
			if must {
				t.Fatalf("ptxas %s: %v (run .ci/cuda-tools)", version, err)
			}
			t.Skipf("ptxas %s is not unpacked: make deps does that", version)
		}
		for _, target := range targets {
			rows = append(rows, assemble(t, bin, version, target, string(kept))...)
		}
	}
	text := "# kernel, digest of its PTX, ptxas, target, registers, shared bytes, spilled bytes, instructions a step, straight code, opcodes a step: make sass-gate\n" + strings.Join(rows, "\n") + "\n"
	if *updateGate {
		if err := os.WriteFile("gate.tsv", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile("gate.tsv"); err != nil || string(want) != text {
		t.Errorf("gate.tsv is not what the assembler gives (%v): look at the change, then go test ./golden/kernels -run SASSGate -update-gate", err)
	}
}

var targets = []int{70, 75, 80, 86, 89, 90}

// assembler is the first CUDA version whose ptxas takes the kernel's PTX. NVIDIA, "PTX ISA", release notes.
func (k Kernel) assembler() string {
	if k.PTX > "7.8" {
		return "12.4"
	}
	return "11.8"
}

var usage = regexp.MustCompile(`Used (\d+) registers(?:, \d+ barriers)?(?:, (\d+) bytes smem)?`)

// assemble gives the rows of all kernels for one target. They are assembled together, since the disassembler takes longer to
// start than to disassemble them all. An update leaves what kept has of PTX that did not change.
func assemble(t *testing.T, bin, version string, target int, kept string) (rows []string) {
	t.Helper()
	var ks []Kernel
	args := []string{fmt.Sprintf("-arch=sm_%d", target), "-v", "-o", filepath.Join(t.TempDir(), "all.cubin")}
	for _, k := range All() {
		if k.Skip(target) != "" || version < k.assembler() {
			continue
		}
		same := fmt.Sprintf("%s\t%s\t%s\tsm_%d\t", k.ID, digest(k), version, target)
		if i := strings.Index(kept, "\n"+same); i >= 0 && *updateGate {
			row, _, _ := strings.Cut(kept[i+1:], "\n")
			rows = append(rows, row)
			continue
		}
		ks, args = append(ks, k), append(args, k.ID+".ptx")
	}
	if len(ks) == 0 {
		return rows
	}
	out, err := exec.Command(filepath.Join(bin, "ptxas"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ptxas %s sm_%d: %v\n%s", version, target, err, out)
	}
	sass, err := exec.Command(filepath.Join(bin, "nvdisasm"), "-c", args[3]).CombinedOutput()
	if err != nil {
		t.Fatalf("nvdisasm %s sm_%d: %v\n%s", version, target, err, sass)
	}
	for _, k := range ks {
		// Of several files together ptxas puts shared memory to the wrong ones: each is asked for by itself.
		alone, err := exec.Command(filepath.Join(bin, "ptxas"), args[0], "-v", "-o", args[3], k.ID+".ptx").CombinedOutput()
		said := string(alone)
		u := usage.FindStringSubmatch(said)
		if err != nil || u == nil {
			t.Fatalf("ptxas %s %s sm_%d: %v\n%s", version, k.ID, target, err, alone)
		}
		if !strings.Contains(said, "0 bytes spill stores, 0 bytes spill loads") {
			t.Errorf("ptxas %s sm_%d spills %s:\n%s", version, target, k.ID, said)
		}
		_, code, ok := strings.Cut(string(sass), "\n.text."+k.ID+":\n")
		code, _, _ = strings.Cut(code, "\n//---")
		if !ok {
			t.Fatalf("nvdisasm %s sm_%d: no %s", version, target, k.ID)
		}
		l, err := StepLoop(code, k, target)
		if err != nil {
			t.Errorf("ptxas %s: %v", version, err)
		}
		for _, f := range l.Faults(k, target) {
			t.Errorf("ptxas %s: %s", version, f)
		}
		var ops []string
		for _, o := range k.SASS {
			if target >= o.From && target <= o.To {
				ops = append(ops, fmt.Sprintf("%s=%d", o.Name, l.Of(o.Name)))
			}
		}
		shared := "0"
		if len(u[2]) > 0 {
			shared = u[2]
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\tsm_%d\t%s\t%s\t0\t%d\t%t\t%s", k.ID, digest(k), version, target, u[1], shared, l.Instructions, l.Straight, strings.Join(ops, " ")))
	}
	sort.Strings(rows)
	return rows
}

func digest(k Kernel) string {
	h := sha256.Sum256([]byte(k.Source()))
	return hex.EncodeToString(h[:16])
}

// Where there is no assembler, the record still has to be of the PTX that is here, for every target.
func TestGateRecordIsOfThesePTX(t *testing.T) {
	record, err := os.ReadFile("gate.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range All() {
		rows := 0
		for row := range strings.Lines(string(record)) {
			f := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
			if f[0] != k.ID {
				continue
			}
			rows++
			if len(f) != 10 || f[1] != digest(k) || f[6] != "0" {
				t.Errorf("%s: the record is of other PTX, or it spills: %q: run make sass-gate", k.ID, f)
			}
		}
		want := 0
		for _, version := range []string{"11.8", "12.4"} {
			for _, target := range targets {
				if k.Skip(target) == "" && version >= k.assembler() {
					want++
				}
			}
		}
		if rows != want {
			t.Errorf("%s has %d rows in gate.tsv, want %d", k.ID, rows, want)
		}
	}
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
	k := Kernel{ID: "k", SASS: []Opcode{{70, 90, "IMAD.WIDE.U32", 1}}}
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
