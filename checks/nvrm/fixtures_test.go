package nvrm

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
)

func TestFixtures(t *testing.T) {
	judge := func(line string) []checks.Finding {
		e, ok := Parse(line)
		if !ok {
			t.Fatalf("not read: %s", line)
		}
		return []checks.Finding{Judge(e)}
	}
	checktest.Events(t, ID, judge("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing"),
		judge("NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0xffff:2477)"), []checks.Finding{Judge(Event{Kind: 200})})
}
