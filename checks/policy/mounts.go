package policy

import (
	"strings"
	"time"
)

// Mounts holds what is expected of a node's file systems.
type Mounts struct {
	Expect    map[string]Mount `json:"expect" yaml:"expect"`         // by mount point: what must be there
	Hang      Duration         `json:"hang" yaml:"hang"`             // one that has not answered for this long is a soft Fail
	MaxUsed   float64          `json:"max_used" yaml:"max_used"`     // a local one fuller than this share, in bytes or inodes, is a soft Fail
	WatchUsed float64          `json:"watch_used" yaml:"watch_used"` // any fuller than this is watched (0.85: facebookresearch/gcm)
}

// A Mount is what one file system must be.
type Mount struct {
	Type     string `json:"type" yaml:"type"`           // as the kernel calls it: xfs, nfs4, lustre; empty: any
	MinBytes uint64 `json:"min_bytes" yaml:"min_bytes"` // its least size
	Writable bool   `json:"writable" yaml:"writable"`
}

func defaultMounts() Mounts {
	return Mounts{Hang: Duration(time.Minute), MaxUsed: 0.98, WatchUsed: 0.85}
}

func (v *validator) mounts(m Mounts) {
	for point := range m.Expect {
		if !strings.HasPrefix(point, "/") {
			v.add("mounts.expect."+point, "want a mount point, as /scratch")
		}
	}
	v.within("mounts.hang", m.Hang, time.Second, day)
	v.share("mounts.max_used", m.MaxUsed)
	v.share("mounts.watch_used", m.WatchUsed)
}
