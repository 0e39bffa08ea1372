package coordinator

import (
	"slices"
	"testing"
)

// Agents are told every control host once, the one that enrols them first, however peers lists them.
func TestURLsNameEveryHostOnce(t *testing.T) {
	const a, b, c = "https://a:7420", "https://b:7420", "https://c:7420"
	for _, tt := range []struct {
		name  string
		peers []string
		want  []string
	}{
		{"alone", nil, []string{b}},
		{"the others", []string{a, c}, []string{b, a, c}},
		{"one list for all", []string{a, b, c, a}, []string{b, a, c}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (Config{URL: b, Peers: tt.peers}).urls(); !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
