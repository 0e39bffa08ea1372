package nic

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
	checktest.Events(t, ID, judge("mlx5_core 0000:63:00.1: Port module event: module 1, Cable unplugged"),
		judge("mlx5_core 0000:41:00.0: poll_health:852:(pid 0): device's health compromised - reached miss count"), []checks.Finding{Judge(Event{Detail: "new"})})
}
