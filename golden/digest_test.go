package golden

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

var update = flag.Bool("update", false, "compute digests.txt anew")

func computed(k kernels.Kernel, s Size, seed int) Digest {
	return DigestOf(ref.Block(k.ID, uint64(seed), s.Threads, s.Steps(k)))
}

// The embedded goldens are what the reference gives: all of the reduced size, and one of the full size for each kernel.
func TestDigestsAreTheReferences(t *testing.T) {
	if *update {
		writeDigests(t)
		return
	}
	for _, k := range kernels.All() {
		for seed := range Seeds {
			for _, s := range []Size{Reduced, Full} {
				d, err := Known(k.ID, s, seed)
				if err != nil {
					t.Fatal(err)
				}
				if s == Full && (seed != 0 || testing.Short()) {
					continue
				}
				if got := computed(k, s, seed); got != d {
					t.Fatalf("%s, size %s, seed %d: embedded %s, computed %s: the kernel has changed (-update), or this CPU is broken", k.ID, s.Name, seed, d, got)
				}
			}
		}
	}
	if want := len(kernels.All()) * 2 * Seeds; len(digests()) != want {
		t.Errorf("%d goldens, want %d", len(digests()), want)
	}
}

// unchanged gives a kernel's goldens as they are embedded, when the first two still hold: a chain that has changed has no
// seed left.
func unchanged(k kernels.Kernel, s Size) (out [Seeds]Digest, ok bool) {
	for seed := range Seeds {
		d, err := Known(k.ID, s, seed)
		if err != nil || seed < 2 && d != computed(k, s, seed) {
			return out, false
		}
		out[seed] = d
	}
	return out, true
}

func writeDigests(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "# kernel, size, seed, digest of the block's words: golden/ref, by go test ./golden -run Digests -update")
	for _, k := range kernels.All() {
		for _, s := range []Size{Reduced, Full} {
			var out [Seeds]Digest
			if kept, ok := unchanged(k, s); ok {
				for seed, d := range kept {
					fmt.Fprintf(&b, "%s %s %d %s\n", k.ID, s.Name, seed, d)
				}
				continue
			}
			var wg sync.WaitGroup
			for half := range 2 {
				wg.Go(func() {
					for seed := half; seed < Seeds; seed += 2 {
						out[seed] = computed(k, s, seed)
					}
				})
			}
			wg.Wait()
			for seed, d := range out {
				fmt.Fprintf(&b, "%s %s %d %s\n", k.ID, s.Name, seed, d)
			}
		}
	}
	if err := os.WriteFile("digests.txt", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
