// Package vectors writes the golden kernels as test vectors that other tools can use: inputs, code in PTX and its source, the
// words that a block must end with, and the rules, in a folder whose README.md says all that is needed to read it.
package vectors

import (
	"crypto/sha256"
	"encoding/hex"
)

// Format is the version of the folder: of manifest.json, the files' layout and the README's rules.
const Format = 1

// A Manifest is manifest.json.
type Manifest struct {
	Format  int             `json:"format"`
	By      string          `json:"by"` // the program and version that wrote it
	Size    string          `json:"size"`
	Threads int             `json:"threads"` // a block
	Kernels []Kernel        `json:"kernels"`
	Files   map[string]File `json:"files"` // every file but this one, by its path with slashes
}

// A File is what a file must be.
type File struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// A Kernel is one kernel and its vectors.
type Kernel struct {
	ID     string   `json:"id"` // also its entry in the PTX
	Rule   string   `json:"rule"`
	Unit   string   `json:"unit"`
	Step   string   `json:"step"`  // what one step does, in words
	Exact  string   `json:"exact"` // why the result is the same on every GPU
	Blind  string   `json:"blind"` // what it cannot see
	Target string   `json:"target"`
	PTX    string   `json:"ptx_version"`
	MinCC  int      `json:"min_capability"` // 10 · major + minor
	Words  int      `json:"words"`          // of state, a thread
	Steps  int      `json:"steps"`
	Behind int      `json:"behind"` // words that a block uses behind the outputs of all slots
	Code   string   `json:"code"`   // path of the PTX
	Source string   `json:"source"` // path of the CUDA C++ that it was compiled from
	Seeds  []Vector `json:"vectors"`
}

// A Vector is one seed: what every thread starts from and ends with.
type Vector struct {
	Seed   int    `json:"seed"`
	Input  string `json:"input"`  // path: words · threads words, little-endian
	Golden string `json:"golden"` // path: likewise
	Digest string `json:"digest"` // the first 16 bytes of the SHA-256 of the golden file, in hex
}

func sha(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
