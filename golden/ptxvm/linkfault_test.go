package ptxvm

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// Faults of what copies go through strike the words that meet their condition, by class, and no copy by another route.
func TestLinkFaults(t *testing.T) {
	const lines = `{"v":1,"id":"a","class":"CLASS","where":{"sm":0,"part":0,"unit":"UNIT","lane":"all"},"when":WHEN,"do":DO,"seed":1}`
	sent := []uint32{0x10, 0x21, 0x32, 0x43, 0x54, 0x65, 0x76, 0x87}
	const old = 0xEEEEEEEE
	for _, tt := range []struct {
		name, class, unit, when, do string
		route                       []Unit
		want                        map[int]uint32 // words that are not what was sent
	}{
		{"a stuck bit", "stuck", "pcie", `{"p":1}`, `{"or":"00000100"}`, OverPCIe, map[int]uint32{0: 0x110, 1: 0x121, 2: 0x132, 3: 0x143, 4: 0x154, 5: 0x165, 6: 0x176, 7: 0x187}},
		{"by another route it is not met", "stuck", "pcie", `{"p":1}`, `{"or":"00000100"}`, Inside, nil},
		{"the copy engine is on every route", "trigger", "copy_engine", `{"p":1,"a":["000000ff","00000043"]}`, `{"xor":"80000000"}`, OverNVLink, map[int]uint32{3: 0x80000043}},
		{"one address", "trigger", "nvlink", `{"p":1,"b":["0000001f","00000008"]}`, `{"and":"fffffff0"}`, OverNVLink, map[int]uint32{2: 0x30}},
		{"the word before", "multi", "pcie", `{"p":1,"a":["000000ff","00000054"]}`, `{"replace":"prev"}`, OverPCIe, map[int]uint32{4: 0x43}},
		{"nothing", "multi", "pcie", `{"p":1,"a":["000000ff","00000054"]}`, `{"replace":"zero"}`, OverPCIe, map[int]uint32{4: 0}},
		{"another word of the line", "multi", "pcie", `{"p":1,"a":["000000ff","00000054"]}`, `{"replace":"lane:7"}`, OverPCIe, map[int]uint32{4: 0x87}},
		{"a word that is not written", "drop", "copy_engine", `{"p":1,"a":["000000ff","00000076"]}`, `{}`, Inside, map[int]uint32{6: old}},
		{"a word that is written twice", "dup", "copy_engine", `{"p":1,"a":["000000ff","00000032"]}`, `{}`, Inside, map[int]uint32{3: 0x32}},
		{"two words that change places", "swap", "pcie", `{"p":1,"a":["000000fe","00000020"]}`, `{}`, OverPCIe, map[int]uint32{1: 0x10}},
		{"a word that goes elsewhere", "addr", "pcie", `{"p":1,"a":["000000ff","00000010"]}`, `{"addr_xor":"00000010"}`, OverPCIe, map[int]uint32{0: old, 4: 0x10}},
		{"a word that goes beyond the copy", "addr", "pcie", `{"p":1,"a":["000000ff","00000010"]}`, `{"addr_xor":"00001000"}`, OverPCIe, map[int]uint32{0: old}},
		{"a bit that comes late", "transition", "pcie", `{"p":1,"a":["000000ff","00000043"]}`, `{"xor":"00000001"}`, OverPCIe, map[int]uint32{3: 0x42}},
		{"a condition that never holds", "stuck", "pcie", `{"p":1,"temp_c":[90,100]}`, `{"or":"00000100"}`, OverPCIe, nil},
		{"after no instruction", "stuck", "pcie", `{"p":1,"prev_op":"mad"}`, `{"or":"00000100"}`, OverPCIe, nil},
	} {
		f := one(t, strings.NewReplacer("CLASS", tt.class, "UNIT", tt.unit, "WHEN", tt.when, "DO", tt.do).Replace(lines))
		d := NewDevice(Config{SMs: 1, Links: true, Faults: []Fault{f}, Env: Env{TempC: 60}})
		want := append([]uint32{}, sent...)
		for i, w := range tt.want {
			want[i] = w
		}
		was := bytes.Repeat([]byte{0xEE}, 4*len(sent))
		d.Transfer(tt.route, firstAddress, words(sent...), was)
		if !bytes.Equal(was, words(want...)) || (len(tt.want) > 0) != (d.Hits()["a"] > 0) {
			t.Errorf("%s: %x, %d hits", tt.name, was, d.Hits()["a"])
		}
		// The same bytes without the first: whole words are struck as before, and of a word in part its part.
		if was = bytes.Repeat([]byte{0xEE}, 4*len(sent)-1); tt.class == "stuck" {
			d.Transfer(tt.route, firstAddress+1, words(sent...)[1:], was)
			if !bytes.Equal(was, words(want...)[1:]) {
				t.Errorf("%s, from the second byte on: %x", tt.name, was)
			}
		}
	}
}

// Without Links the machine has no copies, and such faults are none that it can break.
func TestLinkFaultsAreNotModelledWithoutCopies(t *testing.T) {
	for line, links := range map[string]bool{
		`{"v":1,"id":"a","class":"stuck","where":{"sm":0,"part":0,"unit":"pcie","lane":"all"},"when":{"p":1},"do":{"or":"1"},"seed":1}`:            false,
		`{"v":1,"id":"a","class":"bridge","where":{"sm":0,"part":0,"unit":"pcie","lane":"all"},"when":{"p":1},"do":{"or":"1"},"seed":1}`:           true,
		`{"v":1,"id":"a","class":"stuck","where":{"sm":0,"part":0,"unit":"pcie","lane":"all","net":"n1"},"when":{"p":1},"do":{"or":"1"},"seed":1}`: true,
	} {
		d := NewDevice(Config{SMs: 1, Links: links, Faults: []Fault{one(t, line)}})
		was := make([]byte, 4)
		d.Transfer(OverPCIe, firstAddress, words(0x10), was)
		if len(d.NotModelled) != 1 || binary.LittleEndian.Uint32(was) != 0x10 {
			t.Errorf("%s: not modelled %v, arrives %x", line, d.NotModelled, was)
		}
	}
}
