package agent

import (
	"errors"
	"fmt"
	"math"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A Tombstone says that the certificate with this serial, and every one before it, is void on this node since a hard
// fault. It is written and synced before anybody is told. Only a higher serial clears it.
type Tombstone struct {
	Serial uint64 `json:"serial"`
	Reason string `json:"reason"`
	BootID string `json:"boot_id"`

	unread bool // its file is there and cannot be read, and no certificate is known that it could be for
}

// Covers reports whether the tombstone voids the certificate with that serial. It does so in every boot: the boot id it
// carries is for people.
func (t *Tombstone) Covers(serial uint64) bool { return t != nil && serial <= t.Serial }

const tombstoneFile = "tombstone.json"

// tombstone reads the tombstone. One that is there but says nothing sensible is an error.
func (s store) tombstone() (*Tombstone, error) {
	var t Tombstone
	found, err := atomicfile.ReadJSON(s.path(tombstoneFile), &t)
	if err == nil && found && t.Reason == "" {
		err = errors.New(tombstoneFile + ": it gives no reason")
	}
	if err != nil || !found {
		return nil, err
	}
	return &t, nil
}

func (s store) clearTombstone() error { return atomicfile.Remove(s.path(tombstoneFile)) }

// restoreTombstone takes up the tombstone on disk, after the desired state. One that cannot be read stands, for the
// certificate at hand: a hard fault that was written down is not forgotten because the disk is bad.
func (a *Agent) restoreTombstone() {
	t, err := a.store.tombstone()
	if err == nil {
		a.tombstone = t
		return
	}
	a.log.Error("tombstone is unreadable, and stands", "file", tombstoneFile, "err", err)
	a.tombstone = &Tombstone{Serial: math.MaxUint64, Reason: fmt.Sprintf("a tombstone that cannot be read: %v", err), BootID: a.bootID, unread: true}
	if a.known {
		a.nameTombstone(serialOf(a.desired.Certificate))
	}
}

// nameTombstone gives an unreadable tombstone the serial of the first certificate that is seen beside it.
func (a *Agent) nameTombstone(serial uint64) {
	if a.tombstone == nil || !a.tombstone.unread {
		return
	}
	a.tombstone.Serial, a.tombstone.unread = serial, false
	_ = a.store.save(tombstoneFile, a.tombstone) // logged there; the file that is there stands as well
}

// nameTombstoneBy does so for the certificate in a desired state, if there is one.
func (a *Agent) nameTombstoneBy(d wire.Desired) {
	if d.Certificate != nil {
		a.nameTombstone(d.Certificate.Serial)
	}
}
