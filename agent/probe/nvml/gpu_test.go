//go:build gpu

package nvml

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// The real driver: every GPU has a name, an address and readings, within a second each cycle.
func TestRealDriver(t *testing.T) {
	s, err := New(Config{Argv: []string{os.Args[0]}, Env: []string{"ASSAY_TEST_NVML_CHILD=libnvidia-ml.so.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for cycle := range 3 {
		start := time.Now()
		snap := snapshot(t, s, time.Minute)
		t.Logf("cycle %d: %v", cycle, time.Since(start))
		if !snap.Init.OK || snap.Driver == "" || snap.Count < 1 || len(snap.GPUs) != snap.Count {
			t.Fatalf("got %+v", snap)
		}
		if cycle > 0 && time.Since(start) > time.Second {
			t.Errorf("cycle %d took %v", cycle, time.Since(start))
		}
		for _, g := range snap.GPUs {
			t.Logf("%+v", g)
			if !strings.HasPrefix(g.UUID, "GPU-") || len(g.PCI) < len("0000:3b:00.0") || g.Name == "" || g.Call.Err != "" || g.Call.Lost {
				t.Errorf("got %+v", g)
			}
			if g.ECC.Have == checks.Unread || g.RowRemap.Have == checks.Unread || g.Recovery.Have == checks.Unread {
				t.Errorf("unread: %+v", g)
			}
			if g.NVLink.Have == checks.Unread || g.Clocks.Have != checks.Read || g.Thermal.Core.Have != checks.Read || g.Fabric.Have == checks.Unread ||
				g.Modes.HavePersistence != checks.Read || g.Modes.HaveCompute != checks.Read || g.Leftover.Have == checks.Unread {
				t.Errorf("unread: %+v", g)
			}
			for i, l := range g.NVLink.Links {
				if l.Have == checks.Unread {
					t.Errorf("link %d unread: %+v", i, l)
				}
			}
		}
	}
	if r := s.Stats().Restarts; len(r) != 0 {
		t.Errorf("children were lost: %v", r)
	}
	if err := s.Quiesce(t.Context()); err != nil {
		t.Error(err)
	}
}
