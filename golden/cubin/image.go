package cubin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// An Image is what machine code says of itself, to the driver that loads it.
type Image struct {
	Capability int  // 10 · major + minor that it is for
	Exact      bool // it runs on that capability alone, as sm_90a
	Functions  map[string]Function
}

// A Function is one kernel of an image.
type Function struct {
	Registers int    // a thread
	Shared    int    // static, bytes a block
	Local     int    // bytes a thread, on its stack
	Text      []byte // its instructions
}

// IsImage reports whether code is machine code rather than PTX.
func IsImage(code []byte) bool { return bytes.HasPrefix(code, []byte(elf.ELFMAG)) }

const (
	machineCUDA = elf.Machine(190) // EM_CUDA
	headerBytes = 64               // of a 64-bit file
	exactFlag   = 0x800            // EF_CUDA_ACCELERATORS. Source: LLVM, BinaryFormat/ELF.h
	frameSize   = 0x11             // EIATTR_FRAME_SIZE in .nv.info, of a function: its stack
	infoSized   = 0x04             // an attribute that says how long it is; others have four bytes
)

// Inspect reads machine code.
func Inspect(code []byte) (Image, error) {
	img := Image{Functions: map[string]Function{}}
	// e_version holds the toolkit's version instead of the format's, which the reader insists on.
	plain := bytes.Clone(code)
	if len(plain) >= headerBytes {
		binary.LittleEndian.PutUint32(plain[20:], uint32(elf.EV_CURRENT))
	}
	f, err := elf.NewFile(bytes.NewReader(plain))
	if err != nil {
		return img, fmt.Errorf("machine code: %w", err)
	}
	if f.Machine != machineCUDA || f.Class != elf.ELFCLASS64 {
		return img, fmt.Errorf("machine code: for %s, not for a GPU", f.Machine)
	}
	flags := binary.LittleEndian.Uint32(code[48:]) // e_flags
	img.Capability, img.Exact = int(flags&0xFF), flags&exactFlag != 0
	symbols, err := f.Symbols()
	if err != nil {
		return img, fmt.Errorf("machine code: %w", err)
	}
	stacks := map[string]int{}
	if info := f.Section(".nv.info"); info != nil {
		b, err := info.Data()
		if err != nil {
			return img, fmt.Errorf("machine code: %w", err)
		}
		if stacks, err = readStacks(b, symbols); err != nil {
			return img, err
		}
	}
	for _, s := range f.Sections {
		name, ok := bytes.CutPrefix([]byte(s.Name), []byte(".text."))
		if !ok {
			continue
		}
		fn := Function{Registers: int(s.Info >> 24), Local: stacks[string(name)]}
		if fn.Text, err = s.Data(); err != nil {
			return img, fmt.Errorf("machine code: %w", err)
		}
		if shared := f.Section(".nv.shared." + string(name)); shared != nil {
			fn.Shared = int(shared.Size)
		}
		img.Functions[string(name)] = fn
	}
	return img, nil
}

// readStacks gives each function's stack in bytes.
func readStacks(b []byte, symbols []elf.Symbol) (map[string]int, error) {
	out := map[string]int{}
	for len(b) >= 4 {
		format, attr, n := b[0], b[1], 0
		if format == infoSized {
			n = int(binary.LittleEndian.Uint16(b[2:]))
		}
		if b = b[4:]; n > len(b) {
			return nil, errors.New("machine code: .nv.info ends early")
		}
		if v := b[:n]; attr == frameSize && n == 8 {
			// Go leaves out the first symbol, which is none.
			if i := int(binary.LittleEndian.Uint32(v)) - 1; i >= 0 && i < len(symbols) {
				out[symbols[i].Name] = int(binary.LittleEndian.Uint32(v[4:]))
			}
		}
		b = b[n:]
	}
	return out, nil
}
