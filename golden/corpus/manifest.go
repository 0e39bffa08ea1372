package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Format is the version of a corpus's folder: of manifest.json and what it names.
const Format = 1

// A Manifest is manifest.json: what a corpus holds and how it came to be. Its SHA-256 is the corpus's version.
type Manifest struct {
	Format     int    `json:"format"`
	Generator  string `json:"generator"`
	Seed       uint64 `json:"seed"`
	Asked      int    `json:"asked"`      // programs asked for, those that are kept aside
	Candidates int    `json:"candidates"` // drawn
	Shape
	Words     int            `json:"words"`             // of state, a thread
	Schedules int            `json:"schedules"`         // hostile ones that each program's first golden was found under
	Flips     int            `json:"flips"`             // upsets tried on each program
	Pairs     Basis          `json:"pairs"`             // what counted as new
	Gate      []string       `json:"gate"`              // builds in which each program's instructions are what they should be; empty: not known
	Refused   map[string]int `json:"refused"`           // candidates that were not admitted, by reason
	Stopped   string         `json:"stopped,omitempty"` // why there are fewer programs than were asked for
	Modules   []Module       `json:"modules"`
	Programs  []Program      `json:"programs"`
}

// A Basis says of what the pairs are that a program had to add.
type Basis struct {
	Of    string `json:"of"`              // "sass": of machine code; "ptx": of the text, where no assembler was at hand
	Build string `json:"build,omitempty"` // that made the machine code
	Count int    `json:"count"`           // that all programs cover
}

// A Module is one PTX file with many programs.
type Module struct {
	File   string `json:"file"`
	Tier   int    `json:"tier"` // 70 or 80: the compute capability that it needs
	SHA256 string `json:"sha256"`
}

// A Program is one entry of a module.
type Program struct {
	ID        string   `json:"id"` // the entry's name
	Tier      int      `json:"tier"`
	Digest    string   `json:"digest"`    // of its text: the first 16 bytes of the SHA-256, in hex
	Candidate int      `json:"candidate"` // it was the nth drawn; -1 for one that is kept from elsewhere
	Ops       int      `json:"ops"`       // productions left after minimising
	New       int      `json:"new"`       // pairs that no program before it has
	Reached   float64  `json:"reached"`   // share of upsets that reached the end
	Goldens   []string `json:"goldens"`   // digests for seeds 0 to seeds-1
	Caught    []Catch  `json:"caught,omitempty"`
}

// A Catch is a device that a program found: why it is kept for ever.
type Catch struct {
	At         time.Time `json:"at"`
	GPU        string    `json:"gpu"` // UUID
	Capability int       `json:"capability"`
	Driver     int       `json:"driver"`
	SM         int       `json:"sm"`
	Seed       int       `json:"seed"`
	Words      int       `json:"words"` // that were wrong
	Simulated  bool      `json:"simulated,omitempty"`
}

func sha(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
