package netlist

import "testing"

func TestGatesComputeWhatTheReferenceDoes(t *testing.T) {
	n := 1 << 16
	if testing.Short() {
		n = 1 << 12
	}
	for _, m := range Models() {
		if err := m.Prove(n, 1); err != nil {
			t.Error(err)
		}
	}
}
