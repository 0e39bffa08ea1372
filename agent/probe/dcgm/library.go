package dcgm

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/assay-gpu/assay/checks/dcgm"
)

// errMissing says that there is no DCGM on this node.
var errMissing = errors.New("no libdcgm.so.4")

// library is an Engine over libdcgm.so.4.
type library struct {
	so       uintptr
	announce func(call string)
	every    time.Duration // between looks
	handle   uintptr
	own      bool // the host engine is in this process
}

// open loads the library. The error is errMissing when it is not there.
func open(name string, every time.Duration, announce func(string)) (*library, error) {
	announce("dlopen")
	so, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		if text := err.Error(); strings.Contains(text, "cannot open shared object file: No such file") && strings.Contains(text, name) {
			return nil, fmt.Errorf("%w: %s", errMissing, text)
		}
		return nil, err
	}
	return &library{so: so, announce: announce, every: every}, nil
}

// call makes one call. A symbol that the library does not have is an error: calling it would end the process.
func (l *library) call(name string, args ...uintptr) error {
	f, err := purego.Dlsym(l.so, name)
	if err != nil {
		return fmt.Errorf("%s: this DCGM has no such function", name)
	}
	l.announce(name)
	r, _, _ := purego.SyscallN(f, args...)
	if ret := int32(r); ret != 0 {
		words, ok := returns[ret]
		if !ok {
			words = fmt.Sprintf("DCGM error %d", ret)
		}
		return fmt.Errorf("%s: %s", name, words)
	}
	return nil
}

// connectTimeout bounds a connection; the child's own deadline bounds all.
const connectTimeout = 5 * time.Second

// Connect reaches the host engine at address, HOST, HOST:PORT or unix:///PATH, or starts one in this process.
func (l *library) Connect(address string) (string, error) {
	if err := l.call("dcgmInit"); err != nil {
		return "", err
	}
	var handle uintptr
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&handle)
	l.own = address == ""
	if l.own {
		if err := l.call("dcgmStartEmbedded", modeAuto, uintptr(unsafe.Pointer(&handle))); err != nil {
			return "", err
		}
	} else {
		// The watches stay when we go: the next look finds what they have seen since.
		p := &connectParams{version: structVersion[connectParams](2), persist: 1, timeoutMs: uint32(connectTimeout.Milliseconds())}
		if path, ok := strings.CutPrefix(address, "unix://"); ok {
			p.addressIsSocket, address = 1, path
		}
		name := append([]byte(address), 0)
		pin.Pin(p)
		pin.Pin(&name[0])
		if err := l.call("dcgmConnect_v2", uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&handle))); err != nil {
			return "", err
		}
	}
	l.handle = handle
	v := &versionInfo{version: structVersion[versionInfo](2)}
	pin.Pin(v)
	if err := l.call("dcgmHostengineVersionInfo", l.handle, uintptr(unsafe.Pointer(v))); err != nil {
		return "", err
	}
	for field := range strings.SplitSeq(text(v.raw[:]), ";") {
		if n, ok := strings.CutPrefix(field, "version:"); ok {
			return n, nil
		}
	}
	return "", nil
}

// Look sets the watches and asks for incidents. Watches that had not been set give nothing at the first question.
func (l *library) Look() (dcgm.Health, bool, error) {
	h := dcgm.Health{}
	if err := l.gpus(&h); err != nil {
		return h, false, err
	}
	systems := new(uint32)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(systems)
	if err := l.call("dcgmHealthGet", l.handle, allGPUs, uintptr(unsafe.Pointer(systems))); err != nil {
		return h, false, err
	}
	watched := *systems == everyWatch
	set := &healthSet{version: structVersion[healthSet](2), group: allGPUs, systems: everyWatch, interval: l.every.Microseconds(), keep: max(10*time.Minute, 3*l.every).Seconds()}
	pin.Pin(set)
	if err := l.call("dcgmHealthSet_v2", l.handle, uintptr(unsafe.Pointer(set))); err != nil {
		return h, false, err
	}
	r := &healthResponse{}
	pin.Pin(r)
	asks := 1
	if !watched {
		asks = 2
	}
	for range asks {
		if err := l.call("dcgmUpdateAllFields", l.handle, 1); err != nil {
			return h, watched, err
		}
		r.version = structVersion[healthResponse](5)
		if err := l.call("dcgmHealthCheck", l.handle, allGPUs, uintptr(unsafe.Pointer(r))); err != nil {
			return h, watched, err
		}
	}
	for _, i := range r.incidents[:min(r.count, maxIncidents)] {
		h.Incidents = append(h.Incidents, dcgm.Incident{System: int(i.system), Result: int(i.health), Code: int(i.code), Text: text(i.msg[:]), Group: dcgm.Group(i.group), ID: int(i.id)})
	}
	h.Full = r.count >= maxIncidents
	return h, watched, l.policies(&h)
}

// gpus names the GPUs that the host engine knows.
func (l *library) gpus(h *dcgm.Health) error {
	ids, count := new([maxGPUs]uint32), new(int32)
	a := &deviceAttributes{}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(ids)
	pin.Pin(count)
	pin.Pin(a)
	*count = maxGPUs
	if err := l.call("dcgmGetEntityGroupEntities", l.handle, entityGPU, uintptr(unsafe.Pointer(ids)), uintptr(unsafe.Pointer(count)), onlySupported); err != nil {
		return err
	}
	for _, id := range ids[:min(max(*count, 0), maxGPUs)] {
		*a = deviceAttributes{version: structVersion[deviceAttributes](3)}
		g := dcgm.HealthGPU{ID: int(id)}
		// One that cannot be asked who it is, as a lost one, is still a GPU.
		if l.call("dcgmGetDeviceAttributes", l.handle, uintptr(id), uintptr(unsafe.Pointer(a))) == nil {
			g.UUID, g.PCI = uuid(text(a.uuid[:])), address(text(a.pci[:]))
		}
		h.GPUs = append(h.GPUs, g)
	}
	return nil
}

// policies reads what the host engine does about errors by itself. A host engine without the module does nothing.
func (l *library) policies(h *dcgm.Health) error {
	if len(h.GPUs) == 0 {
		return nil
	}
	list := make([]policyInfo, len(h.GPUs))
	for i := range list {
		list[i].version = structVersion[policyInfo](1)
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&list[0])
	if err := l.call("dcgmPolicyGet", l.handle, allGPUs, uintptr(len(list)), uintptr(unsafe.Pointer(&list[0])), 0); err != nil {
		return nil
	}
	for i, p := range list {
		if p.condition != 0 {
			h.Policies = append(h.Policies, dcgm.Policy{GPU: h.GPUs[i].ID, Condition: int(p.condition), Isolation: int(p.isolation), Action: int(p.action)})
		}
	}
	return nil
}

// uuid is empty for DCGM's own words for none, as "<<<NULL>>>".
func uuid(s string) string {
	if !strings.HasPrefix(s, "GPU-") {
		return ""
	}
	return s
}

// address writes DCGM's 00000000:3B:00.0 as 0000:3b:00.0.
func address(s string) string {
	s = strings.ToLower(s)
	domain, rest, ok := strings.Cut(s, ":")
	if !ok || strings.HasPrefix(s, "<<<") {
		return ""
	}
	if len(domain) > 4 && strings.Trim(domain[:len(domain)-4], "0") == "" {
		domain = domain[len(domain)-4:]
	}
	return domain + ":" + rest
}
