package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/store/faults"
)

// Every call to etcd in the main story fails once, in each way a call can fail. The end is always the same: one drain, one
// reboot, one resume, one closed case, a fresh certificate, no effect left.
func TestEveryStoreCallMayFail(t *testing.T) {
	if testing.Short() {
		t.Skip("75 runs of the story")
	}
	count := faults.New(0, faults.NotApplied)
	s := startSite(t, newPlant("gpu001"), "/count/", count.Wrap)
	s.quarantineAndResume("gpu001")
	s.checkEnd("gpu001")
	s.stop()
	calls := count.Calls()
	if calls < 15 {
		t.Fatalf("the story makes only %d calls: %v", calls, count.Names())
	}
	t.Logf("%d calls, %d ways each", calls, len(faults.Modes))
	for _, mode := range faults.Modes {
		for n := 1; n <= calls; n++ {
			t.Run(fmt.Sprintf("%v/%d", mode, n), func(t *testing.T) {
				t.Parallel()
				inj := faults.New(n, mode)
				s := startSite(t, newPlant("gpu001"), fmt.Sprintf("/fault/%d/%d/", mode, n), inj.Wrap)
				s.quarantineAndResume("gpu001")
				time.Sleep(50 * time.Millisecond) // what was made late has its chance to do harm
				s.checkEnd("gpu001")
				if !inj.Fired() {
					t.Logf("call %d was not reached: this run needed fewer", n)
				}
			})
		}
	}
}

// The process dies right after each call to etcd, applied or not; another takes over with nothing but what etcd holds, and
// Slurm as it stands.
func TestRestartAfterEveryStoreCall(t *testing.T) {
	if testing.Short() {
		t.Skip("40 runs of the story")
	}
	count := faults.New(0, faults.NotApplied)
	s := startSite(t, newPlant("gpu001"), "/count2/", count.Wrap)
	s.quarantineAndResume("gpu001")
	s.stop()
	for _, mode := range []faults.Mode{faults.NotApplied, faults.AppliedError} {
		for n := 5; n <= count.Calls(); n++ {
			t.Run(fmt.Sprintf("%v/%d", mode, n), func(t *testing.T) {
				t.Parallel()
				inj := faults.New(n, mode)
				inj.Crash = true
				s := startSite(t, newPlant("gpu001"), fmt.Sprintf("/crash/%d/%d/", mode, n), inj.Wrap)
				go func() { // the supervisor: the dead process comes back
					for !inj.Fired() {
						time.Sleep(5 * time.Millisecond)
						if t.Context().Err() != nil {
							return
						}
					}
					time.Sleep(300 * time.Millisecond)
					inj.Restart()
				}()
				s.quarantineAndResume("gpu001")
				s.checkEnd("gpu001")
			})
		}
	}
}
