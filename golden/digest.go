package golden

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// digests.txt holds the goldens: for each kernel and size, the digests of seeds 0 to 63 over all words of the block. They
// are computed by golden/ref when a kernel changes (go test ./golden -run Digests -update), never from a GPU, so that at
// run time a chain of any length costs no CPU, and a CPU that computes something else is itself found out.
//
//go:embed digests.txt
var digestFile string

// A Digest stands for the words of a block: the first 16 bytes of their SHA-256, little-endian.
type Digest [16]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// DigestOf gives the digest of a block's words.
func DigestOf(words []uint32) Digest {
	b := make([]byte, 4*len(words))
	for i, w := range words {
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
	h := sha256.Sum256(b)
	return Digest(h[:16])
}

type digestKey struct {
	kernel, size string
	seed         int
}

// digests are read when one is first asked for: most processes ask for none.
var digests = sync.OnceValue(func() map[digestKey]Digest { return readDigests(digestFile) })

func readDigests(text string) map[digestKey]Digest {
	out := map[digestKey]Digest{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		seed, err := strconv.Atoi(f[2])
		b, err2 := hex.DecodeString(f[3])
		if err != nil || err2 != nil || len(b) != 16 {
			panic("golden: digests.txt: " + line) // embedded; a test reads it
		}
		out[digestKey{f[0], f[1], seed}] = Digest(b)
	}
	return out
}

// Known gives the embedded golden of a kernel, size and seed.
func Known(kernel string, s Size, seed int) (Digest, error) {
	d, ok := digests()[digestKey{kernel, s.Name, seed}]
	if !ok {
		return d, fmt.Errorf("no golden for %s, size %s, seed %d", kernel, s.Name, seed)
	}
	return d, nil
}
