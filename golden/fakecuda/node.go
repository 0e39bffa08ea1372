package fakecuda

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/golden/ptxvm"
)

// A Node is what the driver shows: its version and its GPUs.
type Node struct {
	Driver string // of the kernel driver, as 550.54.15
	GPUs   []GPU
	Seed   uint64
}

// A GPU is one simulated device.
type GPU struct {
	UUID       string // GPU-…
	PCI        string
	Name       string
	Capability int    // 10 · major + minor
	SMs        int    // 4 when 0: a real GPU's number would take the machine too long
	Faults     string // what computes wrong: a fault file, JSON Lines; empty for a healthy GPU
	Hang       bool   // a launch never returns
	Error      int    // the CUresult of every launch; 0 for none
	Lost       bool   // no context can be had
	MHz        int    // SM clock under load; 1980 when 0, which is the highest
	Room       int    // bytes that one allocation may have; 1 GiB when 0
	NVLinks    bool   // it reaches other GPUs that have them too
	Bandwidth  Bandwidth
}

// CheckFaults says what is wrong with the text of a fault file, nil when nothing is.
func CheckFaults(text string) error {
	_, err := ptxvm.ParseFaults([]byte(text))
	return err
}

// cuda is the newest CUDA version that a driver branch knows. NVIDIA, "CUDA Toolkit Release Notes", table of drivers.
func (n Node) cuda() int {
	branch, _, _ := strings.Cut(n.Driver, ".")
	b, err := strconv.Atoi(branch)
	switch {
	case err != nil || b >= 580:
		return 13000
	case b >= 570:
		return 12080
	case b >= 550:
		return 12040
	case b >= 535:
		return 12020
	case b >= 525:
		return 12000
	case b >= 520:
		return 11080
	case b >= 470:
		return 11040
	case b >= 450:
		return 11000
	}
	return 10000
}

// ptx is the newest PTX version of a CUDA version. NVIDIA, "PTX ISA", release notes.
func ptx(cuda int) string {
	switch {
	case cuda >= 12040:
		return "8.4"
	case cuda >= 12000:
		return "8.0"
	case cuda >= 11080:
		return "7.8"
	case cuda >= 11040:
		return "7.4"
	case cuda >= 11000:
		return "7.0"
	}
	return "6.3"
}

// Visible gives the GPUs that a process sees, by the rules of CUDA_VISIBLE_DEVICES: indices or the beginnings of UUIDs; an
// entry that fits none hides itself and all that follow it. all says that the variable is not set.
func (n Node) Visible(env string, all bool) []GPU {
	if all {
		return n.GPUs
	}
	var out []GPU
	for _, e := range strings.Split(env, ",") {
		e = strings.TrimSpace(e)
		i, err := strconv.Atoi(e)
		if err != nil {
			i = -1
			for j, g := range n.GPUs {
				if e != "" && strings.HasPrefix(g.UUID, e) {
					i = j
				}
			}
		}
		if i < 0 || i >= len(n.GPUs) {
			break
		}
		out = append(out, n.GPUs[i])
	}
	return out
}

// clock is the SM clock under load, in MHz.
func (g GPU) clock() float64 { return float64(cmp.Or(g.MHz, maxMHz)) }

// uuid gives the 16 bytes of a UUID.
func (g GPU) uuid() ([]byte, error) {
	hex := strings.ReplaceAll(strings.TrimPrefix(g.UUID, "GPU-"), "-", "")
	out := make([]byte, 0, 16)
	for i := 0; i+2 <= len(hex); i += 2 {
		b, err := strconv.ParseUint(hex[i:i+2], 16, 8)
		if err != nil {
			return nil, fmt.Errorf("UUID %s: %w", g.UUID, err)
		}
		out = append(out, byte(b))
	}
	if len(out) != 16 {
		return nil, fmt.Errorf("UUID %s: %d bytes", g.UUID, len(out))
	}
	return out, nil
}
