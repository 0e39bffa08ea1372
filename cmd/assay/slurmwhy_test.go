package main

import (
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// What is open comes first, and the newest; a node is told of once, by its case.
func TestMeetings(t *testing.T) {
	at := func(h int) time.Time { return epoch.Add(time.Duration(h) * time.Hour) }
	cases := []wire.Case{
		{ID: "Q-OLD", Node: "gpu001", Opened: at(1), Closed: at(2), Before: []string{"7"}},
		{ID: "Q-NEW", Node: "gpu002", Opened: at(3), Closed: at(4), After: []string{"7"}},
		{ID: "Q-OPEN", Node: "gpu003", Opened: at(0), Before: []string{"6", "7"}},
		{ID: "Q-OTHER", Node: "gpu004", Opened: at(5), Before: []string{"77"}},
	}
	nodes := []wire.Node{{Name: "gpu003", Slurm: &wire.SlurmNode{Jobs: []string{"7"}}}, {Name: "gpu005", Slurm: &wire.SlurmNode{Jobs: []string{"7"}}}, {Name: "gpu006"}}
	got := ""
	for _, m := range meetings("7", cases, nodes) {
		got += m.Node + " " + m.Case + ", "
	}
	if want := "gpu003 Q-OPEN, gpu002 Q-NEW, gpu001 Q-OLD, gpu005 , "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
