package worker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/assay-gpu/assay/golden"
)

// cpuWords is room for 8,192 processors, the most that Linux has.
const cpuWords = 128

type cpuSet [cpuWords]uint64

func affinity(call uintptr, s *cpuSet) bool {
	_, _, errno := syscall.RawSyscall(call, 0, unsafe.Sizeof(*s), uintptr(unsafe.Pointer(s)))
	return errno == 0
}

// comeNear moves this thread to the processors beside the GPU, so that memory that it pins is there too: copies to the other
// socket's memory are slower and say nothing of the link. away moves it back.
func (t *tester) comeNear() (away func(), near bool) {
	away = func() {}
	text, err := os.ReadFile(filepath.Join(t.sysfs, "bus/pci/devices", t.gpu.PCI, "local_cpulist"))
	if err != nil {
		return away, false
	}
	want, ok := parseCPUs(strings.TrimSpace(string(text)))
	var was cpuSet
	if !ok || !affinity(syscall.SYS_SCHED_GETAFFINITY, &was) || !affinity(syscall.SYS_SCHED_SETAFFINITY, &want) {
		return away, false
	}
	return func() { affinity(syscall.SYS_SCHED_SETAFFINITY, &was) }, true
}

// parseCPUs reads a list as 0-31,64-95; false when it is none, or names nothing.
func parseCPUs(text string) (s cpuSet, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		a, b, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(a)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(b)
		}
		if err != nil || first < 0 || last < first || last >= 64*cpuWords {
			return s, false
		}
		for c := first; c <= last; c++ {
			s[c/64] |= 1 << (c % 64)
		}
		ok = true
	}
	return s, ok
}

// readLink gives a GPU's PCIe link as sysfs shows it; nil where it shows none.
func readLink(sysfs, pci string) *golden.Link {
	dev, err := filepath.EvalSymlinks(filepath.Join(sysfs, "bus/pci/devices", pci))
	if err != nil {
		return nil
	}
	number := func(dir, name string) int {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0
		}
		word, _, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
		if strings.HasSuffix(name, "_speed") {
			return generations[word]
		}
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || n > 32 { // 63 lanes and more: the kernel could not tell
			return 0
		}
		return n
	}
	port := filepath.Dir(dev)
	l := &golden.Link{
		Gen: number(dev, "current_link_speed"), Width: number(dev, "current_link_width"), MaxGen: number(dev, "max_link_speed"), MaxWidth: number(dev, "max_link_width"),
		PortGen: number(port, "max_link_speed"), PortWidth: number(port, "max_link_width"),
	}
	if *l == (golden.Link{}) {
		return nil
	}
	return l
}

// generations by speed in GT/s, as the kernel writes it.
var generations = map[string]int{"2.5": 1, "5.0": 2, "5": 2, "8.0": 3, "8": 3, "16.0": 4, "16": 4, "32.0": 5, "32": 5, "64.0": 6, "64": 6}
