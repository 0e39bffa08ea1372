package nvml

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/checks/policy"
)

// A command that is no probe gives an error in words, within the deadlines, and is not taken for a driver that hangs
// unless it says nothing at all.
func TestChildrenThatAreNoProbe(t *testing.T) {
	for _, tt := range []struct {
		name string
		argv []string
		want string
		hung int
	}{
		{"not there", []string{"/nonexistent/probe"}, "no such file", 0},
		{"ends at once", []string{"/bin/sh", "-c", "exit 3"}, "exit status 3", 0},
		{"says why it ends", []string{"/bin/sh", "-c", "echo first >&2; printf 'it broke\\033[31m' >&2; exit 4"}, "exit status 4: it broke[31m", 0},
		{"talks junk", []string{"/bin/sh", "-c", "echo junk; exec sleep 60"}, "its output ended", 0},
		{"answers another question", []string{"/bin/sh", "-c", `read r; echo '{"gpu":{"state":{}}}'; exec sleep 60`}, "another question", 0},
		{"killed", []string{"/bin/sh", "-c", "kill -9 $$"}, "signal: killed", 0},
		{"says nothing", []string{"/bin/sh", "-c", "exec sleep 60"}, "nvmlInit hung in 2 fresh processes", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "count: 1", func(c *Config) {
				c.Argv = tt.argv
				c.Policy.InitDeadline, c.Policy.HungChildren = policy.Duration(1500*time.Millisecond), 2
			})
			snap := n.snapshot(20 * time.Second)
			if snap.Init.OK || !strings.Contains(snap.Init.Err, tt.want) || snap.Init.HungCount != tt.hung {
				t.Errorf("got %+v, want %q", snap.Init, tt.want)
			}
		})
	}
}

func TestChildEnds(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"when its input ends", "", ""},
		{"when told to", `{"do":"quit"}{"do":"nonsense"}`, ""},
		{"on junk", `{"do":`, "unexpected EOF"},
		{"on a request it does not know", `{"do":"reset"}`, `unknown request "reset"`},
	} {
		var out bytes.Buffer
		err := Child(t.Context(), strings.NewReader(tt.in), &out, library)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
		if out.Len() != 0 {
			t.Errorf("%s: it said %q", tt.name, out.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, w := io.Pipe()
	defer w.Close()
	if err := Child(ctx, in, io.Discard, library); err != nil {
		t.Errorf("when its context ends: %v", err)
	}
}

func TestNumberReadsEachType(t *testing.T) {
	for _, tt := range []struct {
		kind gonvml.ValueType
		raw  [8]byte
		want int
		ok   bool
	}{
		{gonvml.VALUE_TYPE_UNSIGNED_INT, [8]byte{4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, 4, true},
		{gonvml.VALUE_TYPE_SIGNED_INT, [8]byte{0xff, 0xff, 0xff, 0xff}, -1, true},
		{gonvml.VALUE_TYPE_UNSIGNED_LONG_LONG, [8]byte{1, 0, 0, 0, 1}, 1<<32 + 1, true},
		{gonvml.VALUE_TYPE_DOUBLE, [8]byte{0, 0, 0, 0, 0, 0, 0, 0x40}, 2, true},
		{99, [8]byte{1}, 0, false},
	} {
		got, ok := number(gonvml.FieldValue{ValueType: uint32(tt.kind), Value: tt.raw})
		if got != tt.want || ok != tt.ok {
			t.Errorf("type %d: got %d, %v; want %d, %v", tt.kind, got, ok, tt.want, tt.ok)
		}
	}
}

func TestEveryReturnTheProbeMayMeetHasWords(t *testing.T) {
	for ret, text := range returns {
		if text == "" || why("call", ret) != "call: "+text {
			t.Errorf("%d: %q", ret, text)
		}
	}
	if got := why("call", 12345); got != "call: error 12345" {
		t.Errorf("got %q", got)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"call":"nvmlInit"}`))
	f.Add([]byte(`{"gpu":{"state":{"uuid":"GPU-1","call":{"lost":true}}}}`))
	f.Add([]byte(`{"node":{"count":-1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message
		if json.Unmarshal(b, &m) != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var n message
		if err := json.Unmarshal(again, &n); err != nil {
			t.Fatalf("%s does not read back: %v", again, err)
		}
	})
}
