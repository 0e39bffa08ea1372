package worker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-gpu/assay/golden/cuda"
)

// The real driver library on a machine without a GPU: every function that the worker calls is there, and the answer is the
// clean one. .ci/cuda-tools unpacks it; make test runs this.
func TestTheRealDriverWithoutAGPU(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(cache, "assay", "cuda", "driver", "libcuda.so.1")
	if _, err := os.Stat(lib); err != nil {
		if os.Getenv("SASS_GATE") != "" || os.Getenv("CI") == "true" {
			t.Fatalf("%v (run .ci/cuda-tools)", err)
		}
		t.Skip("the driver library is not unpacked: make deps does that")
	}
	if _, err := os.Stat("/proc/driver/nvidia/version"); err == nil {
		t.Skip("this machine has the kernel driver, and maybe a GPU")
	}
	// As root the library makes its device file, driver or no driver; who looks for GPUs there must not find it.
	const made = "/dev/nvidiactl"
	if _, err := os.Stat(made); os.IsNotExist(err) {
		t.Cleanup(func() {
			if err := os.Remove(made); err != nil && !os.IsNotExist(err) {
				t.Error(err)
			}
		})
	}
	if _, err := List(lib); cuda.Code(err) != cuda.NoDevice {
		t.Errorf("%v, want CUDA_ERROR_NO_DEVICE", err)
	}
}
