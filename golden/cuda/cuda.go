// Package cuda is as much of the CUDA driver API as the golden worker calls, loaded at run time: no toolkit, no cgo.
//
// A context is current for an OS thread: a caller locks its goroutine to one and makes all calls from there. Any call may
// hang for good; nothing here has a deadline, which is why the worker is a process that can be killed.
package cuda

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// An Error is a CUresult that is not success.
type Error struct {
	Call string
	Code int
	Name string // as CUDA_ERROR_NO_DEVICE
	Log  string // of the compiler, for a module that was refused
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
	if e.Log != "" {
		s += ": " + e.Log
	}
	return s
}

// Codes that callers tell apart. NVIDIA, "CUDA Driver API", CUresult.
const (
	OutOfMemory     = 2
	NoDevice        = 100
	InvalidDevice   = 101
	InvalidImage    = 200
	InvalidPTX      = 218
	UnsupportedPTX  = 222
	NoBinary        = 209
	ECCUncorrected  = 214
	NVLinkUncorrect = 220
	NotReady        = 600
	IllegalAddress  = 700
	LaunchTimeout   = 702
	LaunchFailed    = 719
	Unavailable     = 46
)

// names are for drivers whose cuGetErrorName does not know, and for when it cannot be asked.
var names = map[int]string{1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 3: "CUDA_ERROR_NOT_INITIALIZED",
	46: "CUDA_ERROR_DEVICE_UNAVAILABLE", 100: "CUDA_ERROR_NO_DEVICE", 200: "CUDA_ERROR_INVALID_IMAGE", 101: "CUDA_ERROR_INVALID_DEVICE", 999: "CUDA_ERROR_UNKNOWN"}

// Device reports whether the error is one that the device itself raised: memory it could not correct, or a kernel that it
// could not run to its end. Such an error ends the context.
func (e *Error) Device() bool {
	switch e.Code {
	case ECCUncorrected, NVLinkUncorrect, IllegalAddress, LaunchTimeout, LaunchFailed:
		return true
	}
	return e.Code >= 714 && e.Code <= 719
}

// A Library is a loaded driver.
type Library struct {
	Path      string
	Simulated bool // it exports cuAssaySimulated: the PTX machine, not a GPU

	f functions
}

// functions are the driver's, by the names they are exported under.
type functions struct {
	Init               func(uint32) int32                                                                                         `sym:"cuInit"`
	DriverGetVersion   func(*int32) int32                                                                                         `sym:"cuDriverGetVersion"`
	GetErrorName       func(int32, *unsafe.Pointer) int32                                                                         `sym:"cuGetErrorName"`
	DeviceGetCount     func(*int32) int32                                                                                         `sym:"cuDeviceGetCount"`
	DeviceGet          func(*int32, int32) int32                                                                                  `sym:"cuDeviceGet"`
	DeviceGetUUID      func(*[16]byte, int32) int32                                                                               `sym:"cuDeviceGetUuid_v2 cuDeviceGetUuid"`
	DeviceGetName      func(*byte, int32, int32) int32                                                                            `sym:"cuDeviceGetName"`
	DeviceGetPCIBusID  func(*byte, int32, int32) int32                                                                            `sym:"cuDeviceGetPCIBusId"`
	DeviceGetAttribute func(*int32, int32, int32) int32                                                                           `sym:"cuDeviceGetAttribute"`
	PrimaryCtxRetain   func(*uintptr, int32) int32                                                                                `sym:"cuDevicePrimaryCtxRetain"`
	PrimaryCtxRelease  func(int32) int32                                                                                          `sym:"cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxRelease"`
	CtxSetCurrent      func(uintptr) int32                                                                                        `sym:"cuCtxSetCurrent"`
	CtxSynchronize     func() int32                                                                                               `sym:"cuCtxSynchronize"`
	ModuleLoadDataEx   func(*uintptr, unsafe.Pointer, uint32, *int32, *uintptr) int32                                             `sym:"cuModuleLoadDataEx"`
	ModuleUnload       func(uintptr) int32                                                                                        `sym:"cuModuleUnload"`
	ModuleGetFunction  func(*uintptr, uintptr, string) int32                                                                      `sym:"cuModuleGetFunction"`
	FuncSetAttribute   func(uintptr, int32, int32) int32                                                                          `sym:"cuFuncSetAttribute"`
	FuncGetAttribute   func(*int32, int32, uintptr) int32                                                                         `sym:"cuFuncGetAttribute"`
	OccupancyMaxBlocks func(*int32, uintptr, int32, uintptr) int32                                                                `sym:"cuOccupancyMaxActiveBlocksPerMultiprocessor"`
	MemAlloc           func(*uint64, uintptr) int32                                                                               `sym:"cuMemAlloc_v2"`
	MemFree            func(uint64) int32                                                                                         `sym:"cuMemFree_v2"`
	MemcpyHtoD         func(uint64, unsafe.Pointer, uintptr) int32                                                                `sym:"cuMemcpyHtoD_v2"`
	MemcpyDtoH         func(unsafe.Pointer, uint64, uintptr) int32                                                                `sym:"cuMemcpyDtoH_v2"`
	LaunchKernel       func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr, params, extra unsafe.Pointer) int32 `sym:"cuLaunchKernel"`

	copies
}

// A LoadError says that there is no driver library, or not one that is new enough.
type LoadError struct {
	Path string
	Err  error
}

func (e *LoadError) Error() string { return fmt.Sprintf("load %s: %v", e.Path, e.Err) }

// Hint says what to do.
func (e *LoadError) Hint() string {
	return "the CUDA driver library comes with the NVIDIA driver (libcuda1 on Debian); without it no golden kernel can run"
}

// Load opens a driver library and finds every function in it. The error is a *LoadError.
func Load(path string) (*Library, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, &LoadError{path, err}
	}
	l := &Library{Path: path}
	missing := append(resolve(h, reflect.ValueOf(&l.f).Elem()), resolve(h, reflect.ValueOf(&l.f.copies).Elem())...)
	if len(missing) > 0 {
		return nil, &LoadError{path, fmt.Errorf("it does not export %s", strings.Join(missing, ", "))}
	}
	if addr, err := purego.Dlsym(h, "cuAssaySimulated"); err == nil && addr != 0 {
		l.Simulated = true
	}
	return l, nil
}

// resolve finds the functions of a struct, and gives those that the library does not have.
func resolve(h uintptr, v reflect.Value) (missing []string) {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			continue
		}
		found := false
		for name := range strings.FieldsSeq(v.Type().Field(i).Tag.Get("sym")) {
			if addr, err := purego.Dlsym(h, name); err == nil && addr != 0 {
				purego.RegisterFunc(v.Field(i).Addr().Interface(), addr)
				found = true
				break
			}
		}
		if !found {
			missing = append(missing, v.Type().Field(i).Tag.Get("sym"))
		}
	}
	return missing
}

func (l *Library) check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	e := &Error{Call: call, Code: int(code), Name: names[int(code)]}
	var p unsafe.Pointer
	if l.f.GetErrorName(code, &p) == 0 && p != nil {
		e.Name = cString(p)
	}
	if e.Name == "" {
		e.Name = "CUDA_ERROR"
	}
	return e
}

func cString(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// Init starts the driver. Without a GPU the error is an *Error with code NoDevice.
func (l *Library) Init() error { return l.check("cuInit", l.f.Init(0)) }

// Version is the newest CUDA version that the driver knows: 1000 · major + 10 · minor.
func (l *Library) Version() (int, error) {
	var v int32
	err := l.check("cuDriverGetVersion", l.f.DriverGetVersion(&v))
	return int(v), err
}

// Count is how many devices this process may see.
func (l *Library) Count() (int, error) {
	var n int32
	err := l.check("cuDeviceGetCount", l.f.DeviceGetCount(&n))
	return int(n), err
}

// Code gives the CUresult in an error, 0 when there is none.
func Code(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
