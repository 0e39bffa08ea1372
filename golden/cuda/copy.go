package cuda

import "unsafe"

// copies are the driver's functions for copies that run beside the host, and for their times.
type copies struct {
	MemHostAlloc      func(*unsafe.Pointer, uintptr, uint32) int32                   `sym:"cuMemHostAlloc"`
	MemFreeHost       func(unsafe.Pointer) int32                                     `sym:"cuMemFreeHost"`
	MemcpyHtoDAsync   func(uint64, unsafe.Pointer, uintptr, uintptr) int32           `sym:"cuMemcpyHtoDAsync_v2"`
	MemcpyDtoHAsync   func(unsafe.Pointer, uint64, uintptr, uintptr) int32           `sym:"cuMemcpyDtoHAsync_v2"`
	MemcpyDtoDAsync   func(uint64, uint64, uintptr, uintptr) int32                   `sym:"cuMemcpyDtoDAsync_v2"`
	MemcpyPeerAsync   func(uint64, uintptr, uint64, uintptr, uintptr, uintptr) int32 `sym:"cuMemcpyPeerAsync"`
	StreamCreate      func(*uintptr, uint32) int32                                   `sym:"cuStreamCreate"`
	StreamDestroy     func(uintptr) int32                                            `sym:"cuStreamDestroy_v2"`
	StreamSynchronize func(uintptr) int32                                            `sym:"cuStreamSynchronize"`
	EventCreate       func(*uintptr, uint32) int32                                   `sym:"cuEventCreate"`
	EventDestroy      func(uintptr) int32                                            `sym:"cuEventDestroy_v2"`
	EventRecord       func(uintptr, uintptr) int32                                   `sym:"cuEventRecord"`
	EventElapsedTime  func(*float32, uintptr, uintptr) int32                         `sym:"cuEventElapsedTime cuEventElapsedTime_v2"`
	CanAccessPeer     func(*int32, int32, int32) int32                               `sym:"cuDeviceCanAccessPeer"`
	CtxEnablePeer     func(uintptr, uint32) int32                                    `sym:"cuCtxEnablePeerAccess"`
}

const (
	// AttrEngines is how many copies run beside kernels: CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT.
	AttrEngines = 40

	nonBlocking       = 1 // CU_STREAM_NON_BLOCKING: it waits for no other stream
	peerAlreadyOn     = 704
	hostAllocPortable = 1 // CU_MEMHOSTALLOC_PORTABLE: pinned for every context of the process
)

// A Pinned is memory of the host that the driver has pinned, so that copy engines reach it.
type Pinned struct {
	d *Device
	p unsafe.Pointer
	n int
}

// AllocHost gives n bytes of pinned memory.
func (d *Device) AllocHost(n int) (*Pinned, error) {
	m := &Pinned{d: d, n: n}
	return m, d.lib.check("cuMemHostAlloc", d.lib.f.MemHostAlloc(&m.p, uintptr(n), hostAllocPortable))
}

// Bytes is the memory itself. It must not be used after Free.
func (m *Pinned) Bytes() []byte { return unsafe.Slice((*byte)(m.p), m.n) }

// Words is the memory as 32-bit words; the driver aligns it to pages.
func (m *Pinned) Words() []uint32 { return unsafe.Slice((*uint32)(m.p), m.n/4) }

// Free gives the memory back.
func (m *Pinned) Free() error { return m.d.lib.check("cuMemFreeHost", m.d.lib.f.MemFreeHost(m.p)) }

// A Stream is a queue of work in which one thing follows another.
type Stream struct {
	d *Device
	s uintptr
}

// Stream makes a stream that waits for no other.
func (d *Device) Stream() (*Stream, error) {
	s := &Stream{d: d}
	return s, d.lib.check("cuStreamCreate", d.lib.f.StreamCreate(&s.s, nonBlocking))
}

// Free gives the stream back.
func (s *Stream) Free() error {
	return s.d.lib.check("cuStreamDestroy", s.d.lib.f.StreamDestroy(s.s))
}

// Sync waits for all that was put on the stream. There is no deadline.
func (s *Stream) Sync() error {
	return s.d.lib.check("cuStreamSynchronize", s.d.lib.f.StreamSynchronize(s.s))
}

// ToDevice puts on the stream a copy of n bytes of m, from byte from on, to the device.
func (s *Stream) ToDevice(to uint64, m *Pinned, from, n int) error {
	return s.d.lib.check("cuMemcpyHtoDAsync", s.d.lib.f.MemcpyHtoDAsync(to, unsafe.Pointer(&m.Bytes()[from]), uintptr(n), s.s))
}

// ToHost puts on the stream a copy of n bytes from the device into m, from byte to on.
func (s *Stream) ToHost(m *Pinned, to int, from uint64, n int) error {
	return s.d.lib.check("cuMemcpyDtoHAsync", s.d.lib.f.MemcpyDtoHAsync(unsafe.Pointer(&m.Bytes()[to]), from, uintptr(n), s.s))
}

// Inside puts on the stream a copy of n bytes within the device.
func (s *Stream) Inside(to, from uint64, n int) error {
	return s.d.lib.check("cuMemcpyDtoDAsync", s.d.lib.f.MemcpyDtoDAsync(to, from, uintptr(n), s.s))
}

// Between puts on the stream a copy of n bytes from one device to another. Both have been begun.
func (s *Stream) Between(to uint64, on *Device, from uint64, of *Device, n int) error {
	return s.d.lib.check("cuMemcpyPeerAsync", s.d.lib.f.MemcpyPeerAsync(to, on.ctx, from, of.ctx, uintptr(n), s.s))
}

// An Event is a moment on a stream.
type Event struct {
	d *Device
	e uintptr
}

// Event makes an event that keeps its time.
func (d *Device) Event() (*Event, error) {
	e := &Event{d: d}
	return e, d.lib.check("cuEventCreate", d.lib.f.EventCreate(&e.e, 0))
}

// Free gives the event back.
func (e *Event) Free() error { return e.d.lib.check("cuEventDestroy", e.d.lib.f.EventDestroy(e.e)) }

// Record puts the event on the stream: its moment is when all before it is done.
func (e *Event) Record(s *Stream) error {
	return e.d.lib.check("cuEventRecord", e.d.lib.f.EventRecord(e.e, s.s))
}

// Since gives the seconds from an earlier event to this one. Both are done.
func (e *Event) Since(from *Event) (float64, error) {
	var ms float32
	err := e.d.lib.check("cuEventElapsedTime", e.d.lib.f.EventElapsedTime(&ms, from.e, e.e))
	return float64(ms) / 1000, err
}

// Use makes a device that has been begun current for this OS thread.
func (d *Device) Use() error { return d.lib.check("cuCtxSetCurrent", d.lib.f.CtxSetCurrent(d.ctx)) }

// Reaches reports whether the device can reach the other's memory without the host.
func (d *Device) Reaches(other *Device) (bool, error) {
	var can int32
	err := d.lib.check("cuDeviceCanAccessPeer", d.lib.f.CanAccessPeer(&can, d.id, other.id))
	return can != 0, err
}

// EnablePeer lets the device, which is the current one, reach the other's memory.
func (d *Device) EnablePeer(other *Device) error {
	if code := d.lib.f.CtxEnablePeer(other.ctx, 0); code != peerAlreadyOn {
		return d.lib.check("cuCtxEnablePeerAccess", code)
	}
	return nil
}

// LaunchOn starts the kernel on a stream. Else it is as Launch.
func (f *Function) LaunchOn(s *Stream, grid, threads, shared int, args ...any) error {
	return f.launch(s.s, grid, threads, shared, args)
}
