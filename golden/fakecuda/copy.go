package fakecuda

import "github.com/assay-gpu/assay/golden/ptxvm"

// A Bandwidth is how fast a GPU's copies are, in bytes a second; 0 is as an H100's on PCIe Gen 5 x16.
type Bandwidth struct {
	Host float64 // to and from the host, each direction
	Own  float64 // within the GPU
	Peer float64 // to and from another GPU, each direction
}

// Of an H100 SXM: host copies as NVIDIA's blog on nvbandwidth shows them; within the GPU half of HBM's 3.35 TB/s, which a copy
// reads and writes; peers, most of 450 GB/s.
var usual = Bandwidth{Host: 55.6e9, Own: 1.5e12, Peer: 390e9}

func (b Bandwidth) host() float64 { return or(b.Host, usual.Host) }
func (b Bandwidth) own() float64  { return or(b.Own, usual.Own) }
func (b Bandwidth) peer() float64 { return or(b.Peer, usual.Peer) }

func or(v, usual float64) float64 {
	if v > 0 {
		return v
	}
	return usual
}

// canPeer says whether a device reaches another's memory.
func (s *server) canPeer(a, b uint64) (int32, uint64, []byte) {
	n := uint64(len(s.gpus))
	if a >= n || b >= n {
		return errBadDevice, 0, nil
	}
	if a != b && s.gpus[a].NVLinks && s.gpus[b].NVLinks {
		return 0, 1, nil
	}
	return 0, 0, nil
}

// copying answers the calls for streams, events, and copies on streams.
func (s *server) copying(q request, blob []byte) (int32, uint64, []byte) {
	a := q.Arg
	switch q.Call {
	case callStream:
		s.streams = append(s.streams, 0)
		return 0, uint64(len(s.streams)), nil
	case callEvent:
		s.events = append(s.events, -1)
		return 0, uint64(len(s.events)), nil
	case callRecord:
		e, t := clock(s.events, a[0]), clock(s.streams, a[1])
		if e == nil || t == nil {
			return errHandle, 0, nil
		}
		*e = *t
		return 0, 0, nil
	case callElapsed:
		from, to := clock(s.events, a[0]), clock(s.events, a[1])
		if from == nil || to == nil || *from < 0 || *to < *from {
			return errHandle, 0, nil
		}
		return 0, uint64((*to - *from) * 1e12), nil
	case callToDevice, callToHost, callInside, callBetween:
		if g := s.gpus[s.gpu]; g.Error != 0 {
			s.sticky = int32(g.Error)
			return s.sticky, 0, nil
		}
		return s.copy(q, blob)
	}
	return errInvalid, 0, nil
}

func clock(clocks []float64, handle uint64) *float64 {
	if handle < 1 || handle > uint64(len(clocks)) {
		return nil
	}
	return &clocks[handle-1]
}

func (s *server) copy(q request, blob []byte) (int32, uint64, []byte) {
	a, speed := q.Arg, s.gpus[s.gpu].Bandwidth
	switch q.Call {
	case callToDevice:
		was := make([]byte, len(blob))
		if s.dev.Read(a[0], was) != nil {
			return errInvalid, 0, nil
		}
		s.dev.Transfer(ptxvm.OverPCIe, a[0], blob, was)
		return s.took(a[1], len(blob), speed.host(), s.dev.Write(a[0], was)), 0, nil
	case callToHost:
		b := make([]byte, len(blob))
		if s.dev.Read(a[0], b) != nil {
			return errInvalid, 0, nil
		}
		s.dev.Transfer(ptxvm.OverPCIe, a[0], b, blob)
		return s.took(a[1], len(b), speed.host(), nil), 0, blob
	case callInside:
		return s.took(a[3], int(a[2]), speed.own(), move(s.dev, a[0], s.dev, a[1], a[2], ptxvm.Inside)), 0, nil
	}
	on, of := s.contexts[int(a[1])-1], s.contexts[int(a[3])-1]
	if on == nil || of == nil {
		return 201, 0, nil // CUDA_ERROR_INVALID_CONTEXT
	}
	route, rate := ptxvm.OverNVLink, min(s.gpus[on.gpu].Bandwidth.peer(), s.gpus[of.gpu].Bandwidth.peer())
	if _, can, _ := s.canPeer(uint64(on.gpu), uint64(of.gpu)); can == 0 { // by way of the host
		route, rate = ptxvm.OverPCIe, min(s.gpus[on.gpu].Bandwidth.host(), s.gpus[of.gpu].Bandwidth.host())/2
	}
	return s.took(a[5], int(a[4]), rate, move(on.dev, a[0], of.dev, a[2], a[4], route)), 0, nil
}

// move copies n bytes between devices, by a route that each of them may have broken.
func move(on *ptxvm.Device, to uint64, of *ptxvm.Device, from, n uint64, route []ptxvm.Unit) error {
	if n > maxBlob {
		n = maxBlob + 1 // more than any allocation: there is no such memory
	}
	b, was := make([]byte, n), make([]byte, n)
	if err := of.Read(from, b); err != nil {
		return err
	}
	if err := on.Read(to, was); err != nil {
		return err
	}
	if on != of {
		between := append([]byte{}, was...)
		of.Transfer(route, from, b, between)
		b = between
	}
	on.Transfer(route, to, b, was)
	return on.Write(to, was)
}

// took lets a copy's time pass on its stream: within 1 % of what the link gives, since no two copies take the same time. A copy
// takes no time to start, as its size stands for a larger one.
func (s *server) took(stream uint64, n int, rate float64, err error) int32 {
	t := clock(s.streams, stream)
	if err != nil || t == nil {
		return errInvalid
	}
	*t += float64(n) / rate * (1 + 0.01*s.random.Float64())
	return 0
}
