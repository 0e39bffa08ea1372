// Package mounts judges a node's file systems: those that policy names are there, none has turned read-only or stopped
// answering, and none is full.
//
// A file system whose server or disk is gone does not answer at all, and whoever asks waits in the kernel until it is
// back. That it has not answered for some time, or answers with an error, is a fault that names it. A local file system that was writable on this
// node and is read-only now has met errors. A full one stops jobs; a full one on the network is everybody's, and no node's
// fault. Sources: mej/nhc check_fs_*, facebookresearch/gcm check-storage (85 %), leptonai/gpud disk (ro remount).
package mounts

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/tally"
)

// ID is the check's catalog id.
const ID = "mounts"

// A Reading is the node's mounted file systems, pseudo file systems aside.
type Reading struct {
	Have   checks.Availability `json:"have"`
	Err    string              `json:"err,omitempty"`
	Mounts []Mount             `json:"mounts,omitempty"` // each device once, by mount point
}

// A Mount is one file system. Sizes are bytes, files are inodes.
type Mount struct {
	Point       string        `json:"point"`
	Device      string        `json:"device"`
	Type        string        `json:"type"`
	Network     bool          `json:"network,omitempty"`
	ReadOnly    bool          `json:"read_only,omitempty"`
	WasWritable bool          `json:"was_writable,omitempty"` // on this node before; Track fills it
	Err         string        `json:"err,omitempty"`          // what it answered with instead of its size
	HungFor     time.Duration `json:"hung_for,omitempty"`     // for how long it has not answered; 0: it did
	Size        uint64        `json:"size"`
	Available   uint64        `json:"available"` // to users
	Files       uint64        `json:"files"`     // 0 on file systems that make inodes as they go
	FilesFree   uint64        `json:"files_free"`
}

// Track fills in what was learned of the mounts, and learns: writable holds the mount points of local file systems that
// have been writable on this node.
func Track(writable map[string]bool, r Reading) Reading {
	r.Mounts = slices.Clone(r.Mounts)
	for i, m := range r.Mounts {
		if !m.ReadOnly && !m.Network {
			writable[m.Point] = true
		}
		r.Mounts[i].WasWritable = writable[m.Point]
	}
	return r
}

// Judge does no I/O.
func Judge(r Reading, p policy.Mounts) checks.Finding {
	if r.Have != checks.Read {
		return tally.Unread(ID, "mounts", r.Err)
	}
	t := tally.New(ID)
	for _, point := range slices.Sorted(maps.Keys(p.Expect)) {
		expected(t, r, path.Clean(point), p.Expect[point])
	}
	full := 0.0
	for _, m := range r.Mounts {
		judge(t, m, p)
		full = max(full, m.used())
	}
	return t.Finding(evidence(r), fmt.Sprintf("%d file systems, the fullest at %.0f %%", len(r.Mounts), 100*full))
}

func expected(t *tally.Tally, r Reading, point string, want policy.Mount) {
	i := slices.IndexFunc(r.Mounts, func(m Mount) bool { return m.Point == point })
	if i < 0 {
		t.Fault(checks.FixConfig, "%s is not mounted", point)
		return
	}
	m := r.Mounts[i]
	switch {
	case want.Type != "" && m.Type != want.Type:
		t.Fault(checks.FixConfig, "%s is %s, policy wants %s", point, m.Type, want.Type)
	case !m.answered():
	case m.Size < want.MinBytes:
		t.Fault(checks.FixConfig, "%s has %s, policy wants %s", point, tally.Bytes(m.Size), tally.Bytes(want.MinBytes))
	case m.ReadOnly && want.Writable:
		t.Fault(checks.Drain, "%s is read-only", point)
	}
}

func judge(t *tally.Tally, m Mount, p policy.Mounts) {
	if m.ReadOnly && m.WasWritable {
		t.Fault(checks.Drain, "%s (%s) has turned read-only", m.Point, m.Device)
	}
	switch {
	case m.HungFor >= p.Hang.D() && m.HungFor > 0:
		t.Fault(checks.Drain, "%s (%s on %s) has not answered for %s", m.Point, m.Type, m.Device, m.HungFor.Round(time.Second))
		return
	case m.HungFor > 0:
		t.Doubt("%s (%s on %s) has not answered for %s; a fault after %s", m.Point, m.Type, m.Device, m.HungFor.Round(time.Second), p.Hang)
		return
	case m.Err != "":
		t.Fault(checks.Drain, "%s (%s on %s) answers with an error: %s", m.Point, m.Type, m.Device, m.Err)
		return
	}
	local := !m.Network && !m.ReadOnly
	for _, x := range []struct {
		what string
		used float64
	}{{"bytes", m.used()}, {"inodes", m.filesUsed()}} {
		switch {
		case x.used > p.MaxUsed && local:
			t.Fault(checks.FixConfig, "%s has %.1f %% of its %s used", m.Point, 100*x.used, x.what)
		case x.used > p.WatchUsed && !m.ReadOnly:
			t.Watch("%s has %.1f %% of its %s used", m.Point, 100*x.used, x.what)
		}
	}
}

func (m Mount) answered() bool { return m.HungFor == 0 && m.Err == "" }

// used is the share that users can no longer have.
func (m Mount) used() float64 { return share(m.Size, m.Available) }

func (m Mount) filesUsed() float64 { return share(m.Files, m.FilesFree) }

func share(all, free uint64) float64 {
	if all == 0 || free > all {
		return 0
	}
	return float64(all-free) / float64(all)
}

func evidence(r Reading) string {
	s := ""
	for _, m := range r.Mounts {
		s += fmt.Sprintf("%s type=%s size=%d available=%d ro=%t\n", m.Point, m.Type, m.Size, m.Available, m.ReadOnly)
	}
	return s
}
