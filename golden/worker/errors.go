package worker

import (
	"bufio"
	"errors"
	"os"
	"strings"

	"github.com/assay-gpu/assay/golden/cuda"
)

func asError(err error, e **cuda.Error) bool { return errors.As(err, e) }

func isLoad(err error) bool {
	var e *cuda.LoadError
	return errors.As(err, &e)
}

// mapped is the file that was really loaded, which a search path or a container may have replaced.
func mapped(library string) string {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return library
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if i := strings.IndexByte(s.Text(), '/'); i >= 0 && strings.Contains(s.Text()[i:], "/libcuda.so") {
			return s.Text()[i:]
		}
	}
	return library
}
