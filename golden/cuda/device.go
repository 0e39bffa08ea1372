package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// Attributes of a device that the worker asks for: CUdevice_attribute.
const (
	AttrClockKHz      = 13 // of the SMs, at the highest
	AttrSMs           = 16
	AttrComputeMode   = 20
	AttrECC           = 32
	AttrL2Bytes       = 38
	AttrMajor         = 75
	AttrMinor         = 76
	AttrSharedOptIn   = 97 // bytes of shared memory a block may ask for
	attrMaxDynamic    = 8  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
	funcSharedBytes   = 1
	funcLocalBytes    = 3
	funcRegisters     = 4
	funcBinaryVersion = 6
	jitErrorLog       = 5
	jitErrorLogBytes  = 6
	jitLogRoom        = 8192
)

// A Device is one GPU.
type Device struct {
	lib *Library
	id  int32
	ctx uintptr

	UUID string
	Name string
	PCI  string // 0000:3b:00.0
}

// Device opens the i-th device that this process sees.
func (l *Library) Device(i int) (*Device, error) {
	d := &Device{lib: l}
	if err := l.check("cuDeviceGet", l.f.DeviceGet(&d.id, int32(i))); err != nil {
		return nil, err
	}
	var u [16]byte
	if err := l.check("cuDeviceGetUuid", l.f.DeviceGetUUID(&u, d.id)); err != nil {
		return nil, err
	}
	d.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
	var name, pci [128]byte
	if err := l.check("cuDeviceGetName", l.f.DeviceGetName(&name[0], int32(len(name)), d.id)); err != nil {
		return nil, err
	}
	if err := l.check("cuDeviceGetPCIBusId", l.f.DeviceGetPCIBusID(&pci[0], int32(len(pci)), d.id)); err != nil {
		return nil, err
	}
	d.Name, d.PCI = text(name[:]), strings.ToLower(text(pci[:]))
	return d, nil
}

func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// Attribute gives a device attribute.
func (d *Device) Attribute(attr int) (int, error) {
	var v int32
	err := d.lib.check(fmt.Sprintf("cuDeviceGetAttribute %d", attr), d.lib.f.DeviceGetAttribute(&v, int32(attr), d.id))
	return int(v), err
}

// Count is how many devices this process may see.
func (d *Device) Count() (int, error) { return d.lib.Count() }

// Begin makes the device's primary context current for this OS thread.
func (d *Device) Begin() error {
	if err := d.lib.check("cuDevicePrimaryCtxRetain", d.lib.f.PrimaryCtxRetain(&d.ctx, d.id)); err != nil {
		return err
	}
	return d.lib.check("cuCtxSetCurrent", d.lib.f.CtxSetCurrent(d.ctx))
}

// End gives the context back.
func (d *Device) End() error {
	return d.lib.check("cuDevicePrimaryCtxRelease", d.lib.f.PrimaryCtxRelease(d.id))
}

// Alloc gives n bytes of device memory.
func (d *Device) Alloc(n int) (uint64, error) {
	var p uint64
	err := d.lib.check("cuMemAlloc", d.lib.f.MemAlloc(&p, uintptr(n)))
	return p, err
}

// Free gives memory back.
func (d *Device) Free(p uint64) error { return d.lib.check("cuMemFree", d.lib.f.MemFree(p)) }

// Write copies words to the device.
func (d *Device) Write(p uint64, w []uint32) error {
	if len(w) == 0 {
		return nil
	}
	return d.lib.check("cuMemcpyHtoD", d.lib.f.MemcpyHtoD(p, unsafe.Pointer(&w[0]), uintptr(4*len(w))))
}

// Read copies words from the device.
func (d *Device) Read(p uint64, w []uint32) error {
	if len(w) == 0 {
		return nil
	}
	return d.lib.check("cuMemcpyDtoH", d.lib.f.MemcpyDtoH(unsafe.Pointer(&w[0]), p, uintptr(4*len(w))))
}

// Sync waits for everything launched. There is no deadline.
func (d *Device) Sync() error { return d.lib.check("cuCtxSynchronize", d.lib.f.CtxSynchronize()) }

// A Function is a kernel ready to be launched.
type Function struct {
	d      *Device
	module uintptr
	f      uintptr
}

// LoadPTX has the driver compile PTX. Where it refuses, the *Error holds the compiler's log. Of several entries of one module
// take the others by Entry, and Unload the first.
func (d *Device) LoadPTX(ptx, entry string) (*Function, error) {
	return d.load(append([]byte(ptx), 0), entry)
}

// LoadCubin has the driver load machine code, as LoadPTX does PTX.
func (d *Device) LoadCubin(code []byte, entry string) (*Function, error) { return d.load(code, entry) }

func (d *Device) load(image []byte, entry string) (*Function, error) {
	log := make([]byte, jitLogRoom)
	options := []int32{jitErrorLog, jitErrorLogBytes}
	// The driver takes the address in an array of pointers and the size as a pointer's value.
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&log[0])
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), jitLogRoom}
	fn := &Function{d: d}
	code := d.lib.f.ModuleLoadDataEx(&fn.module, unsafe.Pointer(&image[0]), uint32(len(options)), &options[0], &values[0])
	runtime.KeepAlive(image)
	if err := d.lib.check("cuModuleLoadDataEx "+entry, code); err != nil {
		err.(*Error).Log = strings.TrimSpace(text(log))
		return nil, err
	}
	return fn, d.lib.check("cuModuleGetFunction "+entry, d.lib.f.ModuleGetFunction(&fn.f, fn.module, entry))
}

// Entry gives another entry of the same module.
func (f *Function) Entry(name string) (*Function, error) {
	o := &Function{d: f.d, module: f.module}
	return o, f.d.lib.check("cuModuleGetFunction "+name, f.d.lib.f.ModuleGetFunction(&o.f, f.module, name))
}

// Unload gives the code back.
func (f *Function) Unload() error {
	return f.d.lib.check("cuModuleUnload", f.d.lib.f.ModuleUnload(f.module))
}

// SetShared allows a launch to have so many bytes of dynamic shared memory.
func (f *Function) SetShared(bytes int) error {
	return f.d.lib.check("cuFuncSetAttribute", f.d.lib.f.FuncSetAttribute(f.f, attrMaxDynamic, int32(bytes)))
}

// Resources are what the driver says of a function's code.
type Resources struct {
	Registers, SharedBytes, LocalBytes, BinaryVersion int
}

// Resources asks for them.
func (f *Function) Resources() (r Resources, err error) {
	for _, a := range []struct {
		attr int32
		v    *int
	}{{funcRegisters, &r.Registers}, {funcSharedBytes, &r.SharedBytes}, {funcLocalBytes, &r.LocalBytes}, {funcBinaryVersion, &r.BinaryVersion}} {
		var v int32
		if err := f.d.lib.check("cuFuncGetAttribute", f.d.lib.f.FuncGetAttribute(&v, a.attr, f.f)); err != nil {
			return r, err
		}
		*a.v = int(v)
	}
	return r, nil
}

// BlocksPerSM is how many blocks of so many threads and bytes fit on an SM.
func (f *Function) BlocksPerSM(threads, shared int) (int, error) {
	var n int32
	err := f.d.lib.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", f.d.lib.f.OccupancyMaxBlocks(&n, f.f, int32(threads), uintptr(shared)))
	return int(n), err
}

// Launch starts the kernel. Each argument is a uint32 or a uint64, as the kernel declares it.
func (f *Function) Launch(grid, threads, shared int, args ...any) error {
	return f.launch(0, grid, threads, shared, args)
}

func (f *Function) launch(stream uintptr, grid, threads, shared int, args []any) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	ptrs := make([]unsafe.Pointer, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case uint32:
			v := &a
			pin.Pin(v)
			ptrs[i] = unsafe.Pointer(v)
		case uint64:
			v := &a
			pin.Pin(v)
			ptrs[i] = unsafe.Pointer(v)
		default:
			return fmt.Errorf("launch: argument %d is a %T", i, a)
		}
	}
	return f.d.lib.check("cuLaunchKernel", f.d.lib.f.LaunchKernel(f.f, uint32(grid), 1, 1, uint32(threads), 1, 1, uint32(shared), stream, unsafe.Pointer(&ptrs[0]), nil))
}
