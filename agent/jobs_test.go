package agent

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// The jobs of prologs that were answered right before the agent stopped are known after its next start, all of them: the
// hooks wait for no disk, the stop does.
func TestJobsAreKeptByAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		b.desire(b.desired(1, 5))
		var want []string
		for i := range 20 {
			id := fmt.Sprint(100 + i)
			want = append(want, id)
			b.agent.Hook(t.Context(), NewHookRequest(Prolog, map[string]string{"SLURM_JOB_ID": id, "SLURM_JOB_GPUS": "0"}))
		}
		b.restart()
		defer b.end()
		if got := b.status().Jobs; !slices.Equal(got, want) {
			t.Errorf("jobs after the restart %v, want %v", got, want)
		}
	})
}
