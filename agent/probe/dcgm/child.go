package dcgm

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/dcgm"
)

// A Question is what a child is to ask.
type Question struct {
	Library string        // to load; empty: libdcgm.so.4 on the loader's path
	Address string        // of the host engine; empty: one in the child itself
	Every   time.Duration // between looks
}

// Child is the body of the probe process: it takes one look and writes, as JSON lines, each call before it is made and then the
// answer. Calls may never return; its parent guards against that.
func Child(out io.Writer, q Question) error {
	enc := json.NewEncoder(out)
	var broken error
	announce := func(call string) {
		if err := enc.Encode(message{Call: call}); err != nil && broken == nil {
			broken = err
		}
	}
	if q.Library == "" {
		q.Library = "libdcgm.so.4"
	}
	l, err := open(q.Library, q.Every, announce)
	m := message{Health: &dcgm.Health{}}
	if err == nil {
		*m.Health, m.Watched, err = look(l, q.Address)
	}
	switch {
	case errors.Is(err, errMissing):
		m.Health.Have, m.Health.Err = checks.NotSupported, err.Error()
	case err != nil:
		m.Health.Have, m.Health.Err = checks.Unread, err.Error()
	default:
		m.Health.Have = checks.Read
	}
	if err := enc.Encode(m); err != nil {
		return err
	}
	return broken // the process ends without dcgmShutdown: it can hang
}

// look takes one look with an engine.
func look(e Engine, address string) (dcgm.Health, bool, error) {
	version, err := e.Connect(address)
	if err != nil {
		return dcgm.Health{}, false, err
	}
	h, watched, err := e.Look()
	h.Version = version
	return h, watched, err
}
