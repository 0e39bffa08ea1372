package catalog

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/ecc"
)

// A capture is a snapshot in JSON: judged anywhere, at any time, it gives the findings that the node gave.
func TestASnapshotReadBackIsJudgedTheSame(t *testing.T) {
	s := healthy(4)
	s.GPUs[0].Call = driver.Call{Hung: "nvmlDeviceGetTotalEccErrors", HungCount: 3, Blocked: true}
	s.GPUs[1].ECC = ecc.Reading{Err: "Unknown Error"}
	s.GPUs[2].RowRemap.Failed = true
	s.Count = 5
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Snapshot
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	before := healthy(5).Inventory()
	if a, b := Judge(s, &before, acting()), Judge(back, &before, acting()); !reflect.DeepEqual(a, b) {
		t.Errorf("got\n%s\nwant\n%s", brief(b), brief(a))
	}
}

func TestInventoryOfASnapshot(t *testing.T) {
	s := healthy(2)
	s.NodeSerial = "S1"
	inv := s.Inventory()
	if inv.Node != "gpu001" || inv.BootID != "boot" || inv.Driver != "550.54.15" || inv.NodeSerial != "S1" || len(inv.GPUs) != 2 || inv.GPUs[1].UUID != "GPU-1" {
		t.Errorf("%+v", inv)
	}
}

func BenchmarkJudge(b *testing.B) {
	s, p := healthy(8), acting()
	inv := s.Inventory()
	b.ReportAllocs()
	for b.Loop() {
		Judge(s, &inv, p)
	}
}
