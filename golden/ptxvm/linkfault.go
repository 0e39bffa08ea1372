package ptxvm

import "encoding/binary"

// Routes that a copy may take: which fault units it goes through.
var (
	OverPCIe   = []Unit{pcie, copyEngine}   // between the host and the device
	Inside     = []Unit{copyEngine}         // within the device
	OverNVLink = []Unit{nvlink, copyEngine} // to or from another device
)

// links are the units that only copies go through. Their faults act where Config.Links says that copies do.
var links = map[Unit]bool{copyEngine: true, pcie: true, nvlink: true}

// Transfer gives what arrives of data when it is copied by a route, over was, which lay there before: both are of one length,
// and was is changed in place. at is the address of the device's side. A fault strikes 32-bit words of the device's memory,
// each of which is an activation; when.a is the word and when.b the low half of its address. A word of which only some bytes
// are copied is struck in those. Where the copy is broken in sm, part and lane have no meaning.
func (d *Device) Transfer(route []Unit, at uint64, data, was []byte) {
	copied := append([]byte{}, data...)
	for _, u := range route {
		for _, f := range d.links {
			if f.unit == u {
				d.moved(f, at, copied, was)
			}
		}
	}
	copy(was, copied)
}

// moved strikes data with one fault. old is what lies where it goes.
func (d *Device) moved(f *activeFault, at uint64, data, old []byte) {
	sent := append([]byte{}, data...)
	lead := int(at % 4)
	n := len(data)
	words := (lead + n + 3) / 4
	acted := false
	// Bytes of a word that are no part of the copy read as zero and are not written.
	word := func(b []byte, i int) uint32 {
		var w [4]byte
		for k := range w {
			if o := 4*i + k - lead; o >= 0 && o < n {
				w[k] = b[o]
			}
		}
		return binary.LittleEndian.Uint32(w[:])
	}
	put := func(i int, v uint32) { // beyond the copy the write is lost
		for k := range 4 {
			if o := 4*i + k - lead; o >= 0 && o < n && data[o] != byte(v>>(8*k)) {
				data[o] = byte(v >> (8 * k))
				acted = true
			}
		}
	}
	was := uint64(0)
	for i := range words {
		v := word(sent, i)
		before := was
		was = uint64(v)
		addr := uint32(at) - uint32(lead) + uint32(4*i)
		if !f.meets(d, "", uint64(v), uint64(addr)) {
			continue
		}
		acted = false
		switch f.Class {
		case "drop":
			put(i, word(old, i))
		case "dup":
			put(i+1, v)
		case "swap":
			put(i, word(sent, i^1))
		case "addr":
			put(i, word(old, i))
			put(int(int64(i)+int64(int32((addr^f.Do.AddrXor)-addr))/4), v)
		case "transition":
			put(i, v^(v^uint32(before))&(f.Do.Xor|f.Do.Or|^f.Do.And))
		default:
			put(i, f.Do.onWord(v, uint32(before), func(lane int) uint32 { return word(sent, i&^31+lane) }))
		}
		if acted {
			f.hits++
		}
	}
}

// onWord gives what a word becomes. lane gives another word of its line of 128 bytes.
func (e Do) onWord(v, before uint32, lane func(int) uint32) uint32 {
	switch {
	case e.Replace == "prev":
		return before
	case e.Replace == "zero":
		return 0
	case e.lane >= 0:
		return lane(e.lane)
	}
	return (v&e.And | e.Or) ^ e.Xor
}
