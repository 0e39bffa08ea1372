package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
)

// An Aside reads what is not in the snapshot: DCGM, the site's own checks. It keeps its own deadlines.
type Aside interface {
	// Look reads what is due and gives all that is known now, and when to look again. For a screen it reads what screens of
	// that level read besides; screen is NoLevel in the background. What it gives for a screen counts, Unknown too: what no
	// screen is to wait for it leaves out.
	Look(ctx context.Context, p policy.Policy, known checks.Inventory, screen checks.Level) (found []checks.Finding, again time.Duration)
	// Readings is what was read last. It does not wait for a look that is being taken.
	Readings() catalog.Beside
	// Quiesce returns once none of its processes may hold a device open.
	Quiesce(ctx context.Context) error
}

// lookAside has the aside i look again and again until ctx ends.
func (a *Agent) lookAside(ctx context.Context, i int) {
	for {
		found, again, err := a.askAside(ctx, i, checks.NoLevel)
		if err != nil || ctx.Err() != nil {
			return
		}
		a.post(ctx, func() { a.aside[i] = found })
		if !sleep(ctx, again) {
			return
		}
	}
}

func (a *Agent) askAside(ctx context.Context, i int, screen checks.Level) ([]checks.Finding, time.Duration, error) {
	var known checks.Inventory
	if err := a.call(ctx, func() { known = a.knownHardware() }); err != nil {
		return nil, 0, err
	}
	found, again := a.cfg.Asides[i].Look(ctx, *a.policy.Load(), known, screen)
	return found, again, nil
}

// screenAside has every aside read what a screen reads, and gives what they found.
func (a *Agent) screenAside(ctx context.Context, level checks.Level) []checks.Finding {
	var all []checks.Finding
	for i := range a.cfg.Asides {
		found, _, err := a.askAside(ctx, i, level)
		if err != nil {
			break // the agent ends, and the screen with it
		}
		all = append(all, found...)
	}
	a.keepScreen()
	return all
}

// keptScreen is screen.json: what only screens read, as the last one did. It is for captures: no verdict rests on it.
type keptScreen struct {
	BootID string         `json:"boot_id"`
	Read   catalog.Beside `json:"read"`
}

// keepScreen puts what only screens read on disk.
func (a *Agent) keepScreen() {
	read := a.readings()
	read = catalog.Beside{Diag: read.Diag, Golden: read.Golden}
	if read.Diag != nil || read.Golden != nil {
		_ = a.store.save("screen.json", keptScreen{a.bootID, read}) // logged there; a capture then lacks it
	}
}

// ScreenReadings is what the last screen of the boot read that nothing else reads, as an agent kept it in stateDir.
func ScreenReadings(stateDir, bootID string) catalog.Beside {
	var k keptScreen
	if s := (store{stateDir, slog.New(slog.DiscardHandler)}); !s.load("screen.json", &k) || k.BootID != bootID {
		return catalog.Beside{}
	}
	return k.Read
}

// readings is what the asides read last, in this boot.
func (a *Agent) readings() catalog.Beside {
	read := ScreenReadings(a.cfg.StateDir, a.bootID)
	for _, s := range a.cfg.Asides {
		read = read.With(s.Readings())
	}
	return read
}

// quiesceAsides returns once no aside's process may hold a device open.
func (a *Agent) quiesceAsides(ctx context.Context) error {
	var errs []error
	for _, s := range a.cfg.Asides {
		if err := s.Quiesce(ctx); err != nil {
			errs = append(errs, fmt.Errorf("our own: %w", err))
		}
	}
	return errors.Join(errs...)
}

// known gives what the asides found last that decides something, and what of it is open. What is open is told, and leaves
// the suite as it is: no suite rests on an aside, but a screen that asked one. It runs in the loop.
func (a *Agent) knownAside() (decided, open []checks.Finding) {
	for _, f := range slices.Concat(a.aside...) {
		if f.Verdict == checks.Unknown {
			open = append(open, f)
		} else {
			decided = append(decided, f)
		}
	}
	return decided, open
}
