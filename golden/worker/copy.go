package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/cuda"
	"github.com/assay-gpu/assay/golden/ref"
)

// A pair is one direction of copies.
type pair struct {
	direction string
	from, to  end
	stream    *cuda.Stream
	move      func(offset, n int) error // puts a copy on the stream
}

// A copier runs one test of copies.
type copier struct {
	t      *tester
	s      *golden.Stage
	groups [][]pair // one after the other; those of a group at once
	ends   []end
	sides  []*gpuSide
	extra  []*cuda.Stream
}

// copyStages runs a test of copies: once, or once for each GPU that this one has links to. An error ends the run; it is also
// in the last stage.
func (t *tester) copyStages(c golden.CopyTest, seed int) (out []golden.Stage, err error) {
	stage := func() golden.Stage {
		return golden.Stage{Kernel: c.ID, Digest: c.Digest(), Seed: seed, Copy: &golden.Copy{}}
	}
	skip := func(format string, args ...any) []golden.Stage {
		s := stage()
		s.Skip = fmt.Sprintf(format, args...)
		return append(out, s)
	}
	if t.gpu.Capability < c.MinCC {
		return skip("needs compute capability %d.%d", c.MinCC/10, c.MinCC%10), nil
	}
	if !c.Links {
		s := stage()
		err := t.copyStage(&s, nil)
		return []golden.Stage{s}, err
	}
	peers, err := t.peers()
	if err != nil {
		s := stage()
		s.Err = err.Error()
		return append(out, s), err
	}
	if len(peers) == 0 {
		return skip("this process sees no GPU but its own"), nil
	}
	for _, p := range peers {
		reaches, err := t.dev.Reaches(p.dev)
		if err == nil && !reaches {
			continue
		}
		s := stage()
		s.Copy.Peer = p.gpu.UUID
		if err == nil {
			err = t.copyStage(&s, p.dev)
		} else {
			s.Err = err.Error()
		}
		if out = append(out, s); err != nil {
			return out, err
		}
	}
	if len(out) == 0 {
		return skip("it reaches none of the %d other GPUs without the host", len(peers)), nil
	}
	return out, nil
}

// A peer is another GPU that this process sees.
type peer struct {
	dev *cuda.Device
	gpu golden.Device
}

// peers opens the GPUs beside the one under test.
func (t *tester) peers() (out []peer, err error) {
	n, err := t.dev.Count()
	if err != nil {
		return nil, err
	}
	for i := 1; i < n; i++ {
		dev, gpu, err := open(t.library, i)
		if err != nil {
			return nil, err
		}
		out = append(out, peer{dev, gpu})
	}
	return out, nil
}

// copyStage runs the test of one stage; other is the peer's device, if there is one.
func (t *tester) copyStage(s *golden.Stage, other *cuda.Device) (err error) {
	started := time.Now()
	c := copier{t: t, s: s}
	defer func() {
		if e := c.free(other); err == nil {
			err = e
		}
		s.Seconds = time.Since(started).Seconds()
		if err != nil {
			s.Err = err.Error()
		}
	}()
	away, near := t.comeNear()
	defer away()
	s.Copy.Near, s.Copy.Bytes, s.Code = near, t.size.CopyBytes(), golden.JIT
	if s.Copy.Engines, err = t.dev.Attribute(cuda.AttrEngines); err != nil {
		return err
	}
	err = c.open(other)
	if cuda.Code(err) == cuda.OutOfMemory || refused(err) {
		s.Err = err.Error() // not here; other stages may still run
		return nil
	}
	if err != nil {
		return err
	}
	release := t.turn.with()
	err = c.verify()
	release()
	if err != nil {
		return err
	}
	if err := c.guards(); err != nil {
		return err
	}
	if s.Err != "" {
		return nil
	}
	return c.rates()
}

// open makes the buffers and the pairs.
func (c *copier) open(other *cuda.Device) error {
	n, d := c.t.size.CopyBytes(), c.t.dev
	own, err := c.side(d)
	if err != nil {
		return err
	}
	device := func(g *gpuSide) (*deviceEnd, error) {
		e, err := newDeviceEnd(g, n)
		if err == nil {
			c.ends = append(c.ends, e)
		}
		return e, err
	}
	host := func() (*hostEnd, error) {
		e, err := newHostEnd(d, n)
		if err == nil {
			c.ends = append(c.ends, e)
		}
		return e, err
	}
	a, err := device(own)
	if err != nil {
		return err
	}
	toDevice := func(to *deviceEnd) (pair, error) {
		h, err := host()
		return pair{golden.HostToDevice, h, to, own.stream, func(offset, n int) error {
			return own.stream.ToDevice(to.data()+uint64(offset), h.m, guardBytes+offset, n)
		}}, err
	}
	toHost := func(from *deviceEnd, s *cuda.Stream) (pair, error) {
		h, err := host()
		return pair{golden.DeviceToHost, from, h, s, func(offset, n int) error {
			return s.ToHost(h.m, guardBytes+offset, from.data()+uint64(offset), n)
		}}, err
	}
	switch c.s.Kernel {
	case "k21_h2d":
		p, err := toDevice(a)
		c.groups = [][]pair{{p}}
		return err
	case "k21_d2h":
		p, err := toHost(a, own.stream)
		c.groups = [][]pair{{p}}
		return err
	case "k21_both":
		b, err := device(own)
		if err != nil {
			return err
		}
		back, err := d.Stream()
		if err != nil {
			return err
		}
		c.extra = append(c.extra, back)
		p, err := toDevice(a)
		if err != nil {
			return err
		}
		q, err := toHost(b, back)
		c.groups = [][]pair{{p, q}}
		return err
	case "k21_d2d":
		b, err := device(own)
		c.groups = [][]pair{{{golden.DeviceToDevice, a, b, own.stream, func(offset, n int) error {
			return own.stream.Inside(b.data()+uint64(offset), a.data()+uint64(offset), n)
		}}}}
		return err
	}
	if err := other.Begin(); err != nil {
		return err
	}
	g, err := c.side(other)
	if err != nil {
		return err
	}
	b, err := device(g)
	if err != nil {
		return err
	}
	for _, e := range []struct{ a, b *cuda.Device }{{other, d}, {d, other}} {
		if err := errors.Join(e.a.Use(), e.a.EnablePeer(e.b)); err != nil {
			return err
		}
	}
	between := func(direction string, from, to *deviceEnd) pair {
		return pair{direction, from, to, own.stream, func(offset, n int) error {
			if err := d.Use(); err != nil {
				return err
			}
			return own.stream.Between(to.data()+uint64(offset), to.g.dev, from.data()+uint64(offset), from.g.dev, n)
		}}
	}
	c.groups = [][]pair{{between(golden.ToPeer, a, b)}, {between(golden.FromPeer, b, a)}}
	return nil
}

func (c *copier) side(d *cuda.Device) (*gpuSide, error) {
	g, err := c.t.side(d)
	if err == nil {
		c.sides = append(c.sides, g)
	}
	return g, err
}

// free gives all back, and leaves the device under test current.
func (c *copier) free(other *cuda.Device) error {
	var errs []error
	for _, e := range c.ends {
		errs = append(errs, e.free())
	}
	errs = append(errs, c.t.dev.Use())
	for _, s := range c.extra {
		errs = append(errs, s.Free())
	}
	for _, g := range c.sides {
		errs = append(errs, g.free())
	}
	if other != nil && len(c.sides) > 1 {
		errs = append(errs, other.End())
	}
	errs = append(errs, c.t.dev.Use())
	for _, err := range errs { // once a context is gone, every call says the same
		if err != nil {
			return err
		}
	}
	return nil
}

// key of the patterns of a seed.
func patternKey(seed int) uint32 { return ref.Mix(0xC0, uint32(seed), 0x21) }

// margin is how far beside the copied bytes is looked for others that changed.
const margin = 64

// verify makes every copy of the test once, follows up the first that is wrong, and plants the canary.
func (c *copier) verify() error {
	for _, group := range c.groups {
		for _, tr := range c.t.size.Transfers() {
			c.s.Copy.Copies += len(group)
			wrong, err := c.try(group, tr, patternKey(c.s.Seed))
			if err != nil {
				return err
			}
			for i, m := range wrong {
				if m == nil {
					c.s.Copy.Verified++
				} else if c.s.Copy.Wrong == nil {
					c.s.Copy.Wrong = m
					if err := c.confirm(group, i, tr); err != nil {
						return err
					}
				}
			}
		}
	}
	if c.s.Copy.Wrong != nil {
		return nil
	}
	return c.plant(c.groups[0])
}

// try makes one copy of each pair of a group, at once, and says what was wrong with each; nil for a right one.
func (c *copier) try(group []pair, tr golden.Transfer, key uint32) ([]*golden.CopyMismatch, error) {
	if err := c.t.stopped(); err != nil {
		return nil, fmt.Errorf("stopped: %w", err)
	}
	words := min(c.t.size.CopyBytes(), tr.Offset+tr.Bytes+margin+3) / 4
	for _, p := range group {
		if err := p.from.put(words, tr.Pattern, key, 0); err != nil {
			return nil, err
		}
		if err := p.to.put(words, tr.Pattern, key, noWord); err != nil {
			return nil, err
		}
	}
	for _, p := range group {
		if err := p.move(tr.Offset, tr.Bytes); err != nil {
			return nil, err
		}
	}
	for _, p := range group {
		if err := p.stream.Sync(); err != nil {
			return nil, err
		}
	}
	out := make([]*golden.CopyMismatch, len(group))
	for i, p := range group {
		var err error
		if out[i], err = p.compare(tr, key, words); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// compare says what is wrong with a copy that was made; nil when nothing is.
func (p pair) compare(tr golden.Transfer, key uint32, words int) (*golden.CopyMismatch, error) {
	s, err := p.compared(tr, key, words)
	if err != nil || s.wrong == 0 {
		return nil, err
	}
	again, err := p.compared(tr, key, words)
	if err != nil {
		return nil, err
	}
	sent, err := p.from.look(words, tr.Pattern, key)
	if err != nil {
		return nil, err
	}
	b, err := p.to.read(4*int(s.first), 4)
	if err != nil {
		return nil, err
	}
	m := &golden.CopyMismatch{
		Direction: p.direction, Pattern: tr.Pattern, Offset: tr.Offset, Bytes: tr.Bytes, Words: int(s.wrong), First: 4 * int(s.first), Bits: s.bits,
		Expected: binary.LittleEndian.Uint32(expected(tr, key, 4*int(s.first), 4)), Got: binary.LittleEndian.Uint32(b),
		Inputs: sent.wrong == 0,
	}
	m.Reread = again == s && m.Got != m.Expected
	return m, nil
}

// compared counts the right and wrong words of a copy: a whole number of words from the start on by the end itself, any other
// by what the host reads of it, and of both the bytes beside, which no copy should have touched.
func (p pair) compared(tr golden.Transfer, key uint32, words int) (s seen, err error) {
	s.first = noWord
	lo, hi := max(0, tr.Offset-margin)&^3, min(4*words, (tr.Offset+tr.Bytes+margin)&^3)
	if tr.Offset == 0 && tr.Bytes%4 == 0 {
		if s, err = p.to.look(tr.Bytes/4, tr.Pattern, key); err != nil {
			return s, err
		}
		if s.right+s.wrong != uint32(tr.Bytes/4) {
			return s, fmt.Errorf("%d of %d words were compared on the GPU", s.right+s.wrong, tr.Bytes/4)
		}
		lo = tr.Bytes
	}
	if hi <= lo {
		return s, nil
	}
	got, err := p.to.read(lo, hi-lo)
	if err != nil {
		return s, err
	}
	want := expected(tr, key, lo, hi-lo)
	for i := 0; i < len(got); i += 4 {
		d := binary.LittleEndian.Uint32(got[i:]) ^ binary.LittleEndian.Uint32(want[i:])
		if d == 0 {
			s.right++
			continue
		}
		s.wrong++
		s.bits |= d
		s.first = min(s.first, uint32(lo+i)/4)
	}
	return s, nil
}

// expected is what n bytes from offset on should be after a copy: the pattern where it went, its complement elsewhere. Both are
// multiples of 4.
func expected(tr golden.Transfer, key uint32, offset, n int) []byte {
	b := make([]byte, 0, n)
	for i := offset / 4; i < (offset+n)/4; i++ {
		b = binary.LittleEndian.AppendUint32(b, ref.Pattern(tr.Pattern, key, uint32(i)))
	}
	for i := range b {
		if at := offset + i; at < tr.Offset || at >= tr.Offset+tr.Bytes {
			b[i] = ^b[i]
		}
	}
	return b
}

// confirm makes a copy that was wrong again: with the same seed, and with others.
func (c *copier) confirm(group []pair, i int, tr golden.Transfer) error {
	for n := range golden.Reruns + 2 {
		seed := c.s.Seed
		if n >= golden.Reruns {
			seed = (seed + 1 + n) % golden.Seeds
		}
		c.t.launches++
		wrong, err := c.try(group, tr, patternKey(seed))
		if err != nil {
			return err
		}
		r := golden.Rerun{Seed: seed, Launch: int(c.t.launches)}
		if wrong[i] != nil {
			r.Wrong = []int{golden.NoSM}
		}
		c.s.Retests = append(c.s.Retests, r)
	}
	return nil
}

// plant copies with one bit of what is copied struck, and looks whether that, and only that, is reported.
func (c *copier) plant(group []pair) error {
	tr := golden.Transfer{Bytes: c.t.size.CopyBytes() / 8}
	p, words, key := group[0], tr.Bytes/4, patternKey(c.s.Seed)
	word, mask := c.t.rng.IntN(words), uint32(1)<<c.t.rng.IntN(32)
	c.s.Canary = golden.Canary{SM: golden.NoSM, Thread: 4 * word, Tried: true}
	if err := p.from.put(words, tr.Pattern, key, 0); err != nil {
		return err
	}
	if err := p.to.put(words, tr.Pattern, key, noWord); err != nil {
		return err
	}
	if err := p.from.strike(word, mask); err != nil {
		return err
	}
	if err := p.move(0, tr.Bytes); err != nil {
		return err
	}
	if err := p.stream.Sync(); err != nil {
		return err
	}
	s, err := p.to.look(words, tr.Pattern, key)
	c.s.Canary.Seen = s == seen{uint32(words - 1), 1, uint32(word), mask}
	return err
}

// guards looks at the bands around every buffer.
func (c *copier) guards() error {
	for _, e := range c.ends {
		ok, err := e.guarded()
		if err != nil {
			return err
		}
		if !ok && c.s.Copy.Wrong == nil {
			c.s.Err = "a guard band was overwritten"
		}
	}
	return nil
}
