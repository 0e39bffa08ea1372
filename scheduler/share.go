package scheduler

import "fmt"

// A Share asks for a part of one GPU. A GPU is whole or shared in one kind, never both and never two kinds.
type Share struct {
	Kind    ShareKind `json:"kind,omitempty"`
	Amount  int       `json:"amount,omitempty"`  // MPS: percent of the GPU's threads, 1 to 100; Shard: time-slice parts
	Profile string    `json:"profile,omitempty"` // MIG: as 1g.10gb, 3g.40gb
	Memory  int       `json:"memory,omitempty"`  // GiB it needs at least; 0: no matter
}

// A ShareKind is a way to divide a GPU.
type ShareKind uint8

const (
	NoShare ShareKind = iota // whole GPUs
	MIG                      // hardware instances
	MPS                      // percent of its threads
	Shard                    // time slices
)

var shareNames = [...]string{"", "mig", "mps", "shard"}

func (k ShareKind) String() string {
	if int(k) < len(shareNames) {
		return shareNames[k]
	}
	return fmt.Sprint("share ", uint8(k))
}

// MarshalText writes the name.
func (k ShareKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name.
func (k *ShareKind) UnmarshalText(b []byte) error {
	for i, n := range shareNames {
		if n == string(b) {
			*k = ShareKind(i)
			return nil
		}
	}
	return fmt.Errorf("share %q: want mig, mps or shard", b)
}

// A Part is a part of one GPU that is taken.
type Part struct {
	Kind   ShareKind `json:"kind,omitempty"`
	GPU    uint8     `json:"gpu,omitempty"`    // index
	Amount uint8     `json:"amount,omitempty"` // MPS percent or shards
	Slots  uint8     `json:"slots,omitempty"`  // MIG: mask of the eight memory slices it covers
	Units  uint8     `json:"units,omitempty"`  // MIG: compute slices of seven
	Memory uint16    `json:"memory,omitempty"` // GiB that it may use; 0: not known
}

func (s Share) valid(id string) error {
	bad := func(format string, args ...any) error {
		return &GangError{id, "share", fmt.Sprintf(format, args...)}
	}
	switch s.Kind {
	case NoShare:
		if s != (Share{}) {
			return bad("an amount, profile or memory of no kind")
		}
	case MIG:
		if _, ok := profileOf(s.Profile); !ok {
			return bad("MIG profile %q: want 1g, 2g, 3g, 4g or 7g with its memory, as 1g.10gb", s.Profile)
		}
	case MPS:
		if s.Amount < 1 || s.Amount > 100 {
			return bad("MPS of %d percent; want 1 to 100", s.Amount)
		}
	case Shard:
		if s.Amount < 1 || s.Amount > 255 {
			return bad("%d shards; want 1 to 255", s.Amount)
		}
	default:
		return bad("%s is no kind", s.Kind)
	}
	return nil
}
