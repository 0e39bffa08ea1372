package fakecuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strings"

	"github.com/assay-gpu/assay/golden/cubin"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// The calls, in the order of cuda.c.
const (
	callInit = iota
	callVersion
	callCount
	callGet
	callUUID
	callName
	callPCI
	callAttribute
	callRetain
	callRelease
	callSync
	callLoad
	callUnload
	callFunction
	callSetAttr
	callGetAttr
	callOccupancy
	callAlloc
	callFree
	callWrite
	callRead
	callLaunch
	callCurrent
	callCanPeer
	callStream
	callEvent
	callRecord
	callElapsed
	callToDevice
	callToHost
	callInside
	callBetween
)

// CUresults that the simulated driver gives.
const (
	errInvalid     = 1
	errNoDevice    = 100
	errBadDevice   = 101
	errNoBinary    = 209
	errBadPTX      = 218
	errOldPTX      = 222
	errImage       = 200
	errHandle      = 400
	errNotFound    = 500
	errAddress     = 700
	errTimeout     = 702
	errInstruction = 715
	errMisaligned  = 716
	errFailed      = 719
	errUnknown     = 999
)

const maxBlob = 1 << 30

// A server answers the calls of one process.
type server struct {
	conn     io.ReadWriter
	node     Node
	gpus     []GPU
	contexts map[int]*context // by GPU
	*context                  // the current one; nil before there is any
	loaded
	streams []float64 // their clocks, in seconds
	events  []float64
	random  *rand.Rand
}

// A context is what a process has of one GPU.
type context struct {
	dev    *ptxvm.Device
	gpu    int
	sticky int32 // what ended it
}

// What is loaded of a process, by its handles.
type loaded struct {
	handles uint64 // given so far
	modules map[uint64]module
	funcs   map[uint64]*function
}

func nothing() loaded { return loaded{modules: map[uint64]module{}, funcs: map[uint64]*function{}} }

type function struct {
	module  uint64
	entry   *ptxvm.Entry
	machine *cubin.Function // of machine code: what it says of itself; nil for PTX
	shared  int
}

type request struct {
	Call, Blob uint32
	Arg        [6]uint64
}

type reply struct {
	Result int32
	Blob   uint32
	Out    uint64
}

// Serve answers calls until the process at the other end of conn is gone. visible is its CUDA_VISIBLE_DEVICES, set whether
// it has that variable. The error says what was no message; the end of the stream is none.
func Serve(conn io.ReadWriter, node Node, visible string, set bool) error {
	s := &server{conn: conn, node: node, gpus: node.Visible(visible, !set), contexts: map[int]*context{}, loaded: nothing(), random: rand.New(rand.NewPCG(node.Seed, 0xC0B1))}
	for {
		var q request
		if err := binary.Read(conn, binary.LittleEndian, &q); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("simulated CUDA: %w", err)
		}
		if q.Blob > maxBlob {
			return fmt.Errorf("simulated CUDA: a message of %d bytes", q.Blob)
		}
		blob := make([]byte, q.Blob)
		if _, err := io.ReadFull(conn, blob); err != nil {
			return fmt.Errorf("simulated CUDA: %w", err)
		}
		code, out, data := s.call(q, blob)
		b, err := binary.Append(nil, binary.LittleEndian, reply{code, uint32(len(data)), out})
		if err != nil {
			return err
		}
		if _, err := conn.Write(append(b, data...)); err != nil {
			return fmt.Errorf("simulated CUDA: %w", err)
		}
	}
}

func (s *server) call(q request, blob []byte) (int32, uint64, []byte) {
	switch q.Call {
	case callInit:
		if len(s.gpus) == 0 {
			return errNoDevice, 0, nil
		}
		return 0, 0, nil
	case callVersion:
		return 0, uint64(s.node.cuda()), nil
	case callCount:
		return 0, uint64(len(s.gpus)), nil
	case callGet:
		if q.Arg[0] >= uint64(len(s.gpus)) {
			return errBadDevice, 0, nil
		}
		return 0, q.Arg[0], nil
	case callUUID, callName, callPCI, callAttribute, callRetain, callRelease:
		return s.device(q)
	case callCurrent:
		if q.Arg[0] == 0 || s.contexts[int(q.Arg[0])-1] == nil {
			return 201, 0, nil
		}
		s.context = s.contexts[int(q.Arg[0])-1]
		return 0, 0, nil
	case callCanPeer:
		return s.canPeer(q.Arg[0], q.Arg[1])
	}
	if s.context == nil {
		return 201, 0, nil // CUDA_ERROR_INVALID_CONTEXT
	}
	if s.sticky != 0 {
		return s.sticky, 0, nil
	}
	switch q.Call {
	case callSync:
		return 0, 0, nil
	case callUnload:
		return s.unload(q.Arg[0]), 0, nil
	case callLoad:
		if cubin.IsImage(blob) {
			return s.loadImage(blob)
		}
		return s.load(string(blob))
	case callFunction:
		return s.function(q.Arg[0], string(blob))
	case callSetAttr, callGetAttr, callOccupancy, callLaunch:
		f := s.funcs[q.Arg[0]]
		if f == nil {
			return errHandle, 0, nil
		}
		return s.onFunction(f, q, blob)
	case callAlloc:
		room := uint64(maxBlob)
		if n := s.gpus[s.gpu].Room; n > 0 {
			room = uint64(n)
		}
		if q.Arg[0] < 1 || q.Arg[0] > room {
			return 2, 0, nil
		}
		return 0, s.dev.Alloc(int(q.Arg[0])), nil
	case callFree:
		return invalid(s.dev.Free(q.Arg[0])), 0, nil
	case callWrite:
		return invalid(s.dev.Write(q.Arg[0], blob)), 0, nil
	case callRead:
		if q.Arg[1] > maxBlob {
			return errInvalid, 0, nil
		}
		b := make([]byte, q.Arg[1])
		return invalid(s.dev.Read(q.Arg[0], b)), 0, b
	}
	return s.copying(q, blob)
}

func invalid(err error) int32 {
	if err != nil {
		return errInvalid
	}
	return 0
}

func (s *server) device(q request) (int32, uint64, []byte) {
	i := q.Arg[0]
	if q.Call == callAttribute {
		i = q.Arg[1]
	}
	if i >= uint64(len(s.gpus)) {
		return errBadDevice, 0, nil
	}
	g := s.gpus[i]
	if g.SMs == 0 {
		g.SMs = 4
	}
	switch q.Call {
	case callUUID:
		b, err := g.uuid()
		if err != nil {
			return errUnknown, 0, nil
		}
		return 0, 0, b
	case callName:
		return 0, 0, []byte(g.Name)
	case callPCI:
		return 0, 0, []byte(g.PCI)
	case callAttribute:
		v, ok := map[uint64]int{13: maxMHz * 1000, 16: g.SMs, 20: 0, 32: 1, 38: 50 << 20, 40: 3, 75: g.Capability / 10, 76: g.Capability % 10, 97: sharedOptIn}[q.Arg[0]]
		if !ok {
			return errInvalid, 0, nil
		}
		return 0, uint64(v), nil
	case callRelease:
		if s.context == s.contexts[int(i)] {
			s.context = nil
		}
		delete(s.contexts, int(i))
		return 0, 0, nil
	}
	if g.Lost {
		return errUnknown, 0, nil
	}
	faults, err := ptxvm.ParseFaults([]byte(g.Faults))
	if err != nil {
		return errUnknown, 0, nil
	}
	if s.contexts[int(i)] == nil {
		s.contexts[int(i)] = &context{gpu: int(i), dev: ptxvm.NewDevice(ptxvm.Config{SMs: g.SMs, Capability: g.Capability, Seed: s.node.Seed,
			SharedSM: sharedSM, Faults: faults, Budget: 1 << 27, Links: true, Env: ptxvm.Env{TempC: 60, MHz: g.clock(), Util: 1}})}
	}
	return 0, i + 1, nil
}

// Of an H100: 228 KiB an SM, of which a block may ask for 227. NVIDIA, "CUDA C++ Programming Guide", technical specifications.
const (
	sharedSM    = 228 << 10
	sharedOptIn = 227 << 10
)

// maxMHz is the highest SM clock that nvidia-smi -q -d CLOCK shows of an H100 SXM.
const maxMHz = 1980

func (s *server) load(text string) (int32, uint64, []byte) {
	m, err := ptxvm.Parse(text)
	if err != nil {
		return errBadPTX, 0, []byte(err.Error())
	}
	have := ptx(s.node.cuda())
	if len(m.Version) != 3 || m.Version > have {
		return errOldPTX, 0, fmt.Appendf(nil, "Unsupported .version %s; current version is '%s'", m.Version, have)
	}
	var target int
	if _, err := fmt.Sscanf(m.Target, "sm_%d", &target); err != nil || target > s.gpus[s.gpu].Capability || strings.HasSuffix(m.Target, "a") && target != s.gpus[s.gpu].Capability {
		return errNoBinary, 0, fmt.Appendf(nil, "target %s on a device of capability %d", m.Target, s.gpus[s.gpu].Capability)
	}
	return s.add(module{Module: m})
}

func (s *server) function(module uint64, name string) (int32, uint64, []byte) {
	m, ok := s.modules[module]
	if !ok {
		return errHandle, 0, nil
	}
	e, ok := m.Entries[name]
	if !ok {
		return errNotFound, 0, nil
	}
	s.handles++
	s.funcs[s.handles] = &function{module: module, entry: e, machine: m.machine}
	sizes := binary.LittleEndian.AppendUint32(nil, uint32(len(e.Params)))
	for _, p := range e.Params {
		sizes = binary.LittleEndian.AppendUint32(sizes, uint32(p.Size))
	}
	return 0, s.handles, sizes
}

// unload forgets a module with its functions: a soak loads each kernel again and again.
func (s *server) unload(module uint64) int32 {
	if _, ok := s.modules[module]; !ok {
		return errHandle
	}
	delete(s.modules, module)
	maps.DeleteFunc(s.funcs, func(_ uint64, f *function) bool { return f.module == module })
	return 0
}

func (s *server) onFunction(f *function, q request, blob []byte) (int32, uint64, []byte) {
	switch q.Call {
	case callSetAttr:
		if q.Arg[1] != 8 || q.Arg[2] > sharedOptIn {
			return errInvalid, 0, nil
		}
		f.shared = int(q.Arg[2])
		return 0, 0, nil
	case callGetAttr:
		// Of PTX the registers are as many as a kernel of 1,024 threads may have. Binary version: the capability.
		m := cubin.Function{Registers: 64, Shared: f.entry.Shared}
		if f.machine != nil {
			m = *f.machine
		}
		v, ok := map[uint64]int{1: m.Shared, 3: m.Local, 4: m.Registers, 6: s.gpus[s.gpu].Capability}[q.Arg[1]]
		if !ok {
			return errInvalid, 0, nil
		}
		return 0, uint64(v), nil
	case callOccupancy:
		return 0, uint64(s.dev.Occupancy(f.entry, int(q.Arg[1]), int(q.Arg[2])+1<<10)), nil // the driver keeps 1 KiB a block
	}
	return s.launch(f, int(q.Arg[1]), int(q.Arg[2]), int(q.Arg[3]), blob), 0, nil
}

func (s *server) launch(f *function, grid, threads, shared int, args []byte) int32 {
	g := s.gpus[s.gpu]
	if g.Hang {
		_, _ = io.Copy(io.Discard, s.conn) // until the process at the other end is killed, and this one with it
	}
	if g.Error != 0 {
		s.sticky = int32(g.Error)
		return s.sticky
	}
	if shared > f.shared && shared > 48<<10 {
		return errInvalid
	}
	params := make([]byte, f.entry.ParamBytes)
	for _, p := range f.entry.Params {
		if len(args) < p.Size {
			return errInvalid
		}
		copy(params[p.Offset:], args[:p.Size])
		args = args[p.Size:]
	}
	err := s.dev.Launch(f.entry, grid, threads, shared, params)
	var t *ptxvm.Trap
	if errors.As(err, &t) {
		s.sticky = map[string]int32{"illegal_address": errAddress, "misaligned": errMisaligned, "illegal_instruction": errInstruction,
			"timeout": errTimeout, "deadlock": errTimeout}[t.Kind]
		if s.sticky == 0 {
			s.sticky = errFailed
		}
		return s.sticky
	}
	return invalid(err)
}
