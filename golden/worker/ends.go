package worker

import (
	"encoding/binary"

	"github.com/assay-gpu/assay/golden/cuda"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

// A seen is what a comparison with a pattern gave: how many words were right and wrong, the lowest index of a wrong one, and
// all bits that differed.
type seen struct {
	right, wrong, first, bits uint32
}

const noWord = 0xFFFFFFFF

// An end is a buffer that copies go from or to, between two guard bands.
type end interface {
	// put fills the first words with a pattern, XORed with flip.
	put(words, pattern int, key, flip uint32) error
	// look compares the first words with a pattern.
	look(words, pattern int, key uint32) (seen, error)
	// read gives some of the buffer's bytes.
	read(offset, n int) ([]byte, error)
	// strike flips bits of one word.
	strike(word int, mask uint32) error
	// guarded says whether the guard bands are as they were.
	guarded() (bool, error)
	free() error
}

const guardBytes = 4 * guardWords

// A hostEnd is pinned memory.
type hostEnd struct{ m *cuda.Pinned }

func newHostEnd(d *cuda.Device, n int) (*hostEnd, error) {
	m, err := d.AllocHost(n + 2*guardBytes)
	if err != nil {
		return nil, err
	}
	w := m.Words()
	copy(w, guard(hostGuard))
	copy(w[len(w)-guardWords:], guard(hostGuard+1<<12))
	return &hostEnd{m}, nil
}

// hostGuard keys the guard bands of pinned memory.
const hostGuard = 0x5A5A << 12

func (h *hostEnd) words() []uint32 {
	w := h.m.Words()
	return w[guardWords : len(w)-guardWords]
}

func (h *hostEnd) put(words, pattern int, key, flip uint32) error {
	w := h.words()[:words]
	for i := range w {
		w[i] = ref.Pattern(pattern, key, uint32(i)) ^ flip
	}
	return nil
}

func (h *hostEnd) look(words, pattern int, key uint32) (seen, error) {
	s := seen{first: noWord}
	for i, v := range h.words()[:words] {
		d := v ^ ref.Pattern(pattern, key, uint32(i))
		if d == 0 {
			s.right++
			continue
		}
		if s.wrong == 0 {
			s.first = uint32(i)
		}
		s.wrong++
		s.bits |= d
	}
	return s, nil
}

func (h *hostEnd) read(offset, n int) ([]byte, error) {
	return append([]byte{}, h.m.Bytes()[guardBytes+offset:][:n]...), nil
}

func (h *hostEnd) strike(word int, mask uint32) error {
	h.words()[word] ^= mask
	return nil
}

func (h *hostEnd) guarded() (bool, error) {
	w := h.m.Words()
	return equal(w[:guardWords], guard(hostGuard)) && equal(w[len(w)-guardWords:], guard(hostGuard+1<<12)), nil
}

func (h *hostEnd) free() error { return h.m.Free() }

// A deviceEnd is memory of a GPU, whose SMs fill and compare it.
type deviceEnd struct {
	g      *gpuSide
	at     uint64 // of the guard before it
	n      int    // bytes without the guards
	report uint64 // for look
}

// A gpuSide is a GPU with a stream and the kernels that make and compare patterns on it.
type gpuSide struct {
	dev           *cuda.Device
	stream        *cuda.Stream
	fill, check   *cuda.Function
	grid, threads int
}

func (t *tester) side(d *cuda.Device) (g *gpuSide, err error) {
	g = &gpuSide{dev: d, grid: 2 * t.gpu.SMs, threads: t.size.Threads}
	if err := d.Use(); err != nil {
		return nil, err
	}
	if g.fill, err = d.LoadPTX(kernels.CopySource(), "k21_fill"); err != nil {
		return nil, err
	}
	if g.check, err = g.fill.Entry("k21_check"); err != nil {
		return nil, err
	}
	g.stream, err = d.Stream()
	return g, err
}

func (g *gpuSide) free() error {
	if err := g.dev.Use(); err != nil {
		return err
	}
	if err := g.stream.Free(); err != nil {
		return err
	}
	return g.fill.Unload()
}

func newDeviceEnd(g *gpuSide, n int) (*deviceEnd, error) {
	e := &deviceEnd{g: g, n: n}
	if err := g.dev.Use(); err != nil {
		return nil, err
	}
	var err error
	if e.at, err = g.dev.Alloc(n + 2*guardBytes); err != nil {
		return nil, err
	}
	if e.report, err = g.dev.Alloc(16); err != nil {
		return nil, err
	}
	if err := g.dev.Write(e.at, guard(e.at)); err != nil {
		return nil, err
	}
	return e, g.dev.Write(e.data()+uint64(n), guard(^e.at))
}

func (e *deviceEnd) data() uint64 { return e.at + guardBytes }

func (e *deviceEnd) put(words, pattern int, key, flip uint32) error {
	if err := e.g.dev.Use(); err != nil {
		return err
	}
	if err := e.g.fill.LaunchOn(e.g.stream, e.g.grid, e.g.threads, 0, e.data(), uint32(words), uint32(pattern), key, flip); err != nil {
		return err
	}
	return e.g.stream.Sync()
}

func (e *deviceEnd) look(words, pattern int, key uint32) (s seen, err error) {
	if err := e.g.dev.Use(); err != nil {
		return s, err
	}
	w := []uint32{0, 0, noWord, 0}
	if err := e.g.dev.Write(e.report, w); err != nil {
		return s, err
	}
	if err := e.g.dev.Sync(); err != nil { // a small write may still be on its way, and our stream waits for no other
		return s, err
	}
	if err := e.g.check.LaunchOn(e.g.stream, e.g.grid, e.g.threads, 0, e.data(), uint32(words), uint32(pattern), key, e.report); err != nil {
		return s, err
	}
	if err := e.g.stream.Sync(); err != nil {
		return s, err
	}
	err = e.g.dev.Read(e.report, w)
	return seen{w[0], w[1], w[2], w[3]}, err
}

func (e *deviceEnd) read(offset, n int) ([]byte, error) {
	if err := e.g.dev.Use(); err != nil {
		return nil, err
	}
	first := offset / 4
	w := make([]uint32, (offset+n+3)/4-first)
	if err := e.g.dev.Read(e.data()+uint64(4*first), w); err != nil {
		return nil, err
	}
	b := make([]byte, 0, 4*len(w))
	for _, v := range w {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b[offset-4*first:][:n], nil
}

func (e *deviceEnd) strike(word int, mask uint32) error {
	if err := e.g.dev.Use(); err != nil {
		return err
	}
	w, at := make([]uint32, 1), e.data()+uint64(4*word)
	if err := e.g.dev.Read(at, w); err != nil {
		return err
	}
	w[0] ^= mask
	if err := e.g.dev.Write(at, w); err != nil {
		return err
	}
	return e.g.dev.Sync()
}

func (e *deviceEnd) guarded() (bool, error) {
	if err := e.g.dev.Use(); err != nil {
		return false, err
	}
	w := make([]uint32, guardWords)
	if err := e.g.dev.Read(e.at, w); err != nil || !equal(w, guard(e.at)) {
		return false, err
	}
	err := e.g.dev.Read(e.data()+uint64(e.n), w)
	return equal(w, guard(^e.at)), err
}

func (e *deviceEnd) free() error {
	if err := e.g.dev.Use(); err != nil {
		return err
	}
	if err := e.g.dev.Free(e.report); err != nil {
		return err
	}
	return e.g.dev.Free(e.at)
}
