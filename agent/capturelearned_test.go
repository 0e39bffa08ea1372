package agent

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
)

// A capture is judged by what most nodes of the product show, as the daemon was: written and read back, and redacted too.
func TestACaptureKeepsWhatTheFleetShows(t *testing.T) {
	c := Capture{CaptureMeta: CaptureMeta{Node: "gpu-017", BootID: "boot-1", At: time.Unix(1_700_000_000, 0).UTC()}, Snapshot: wellSnapshot(), Policy: policy.Default()}
	if err := json.Unmarshal([]byte(`{"cpu":{"count":193}}`), &c.Learned); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c.CaptureMeta)
	if err != nil {
		t.Fatal(err)
	}
	c.CaptureMeta = CaptureMeta{}
	if err := json.Unmarshal(text, &c.CaptureMeta); err != nil {
		t.Fatal(err)
	}
	if got := c.ForNode().Policy.CPU.Count; got != 193 {
		t.Errorf("judged by %d processors, want what the fleet shows", got)
	}
	redacted, err := c.Redact([]byte("salt"))
	if err != nil || redacted.ForNode().Policy.CPU.Count != 193 {
		t.Errorf("redacted: judged by %d processors, %v", redacted.ForNode().Policy.CPU.Count, err)
	}
	c.Policy.CPU.Count = 96
	if got := c.ForNode().Policy.CPU.Count; got != 96 {
		t.Errorf("policy says 96 processors, judged by %d", got)
	}
}
