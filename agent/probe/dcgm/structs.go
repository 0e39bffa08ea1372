package dcgm

import (
	"bytes"
	"unsafe"
)

// What is used of dcgm_structs.h of DCGM 4 (NVIDIA/DCGM, tags v4.0.0 to v4.6.0; the same in all of them). Layouts are C's
// natural ones on x86-64 and arm64, which Go's are too. DCGM asserts the sizes of the versions named.
type (
	// dcgmConnectV2Params_v2
	connectParams struct {
		version         uint32
		persist         uint32 // keep the watches when the connection ends
		timeoutMs       uint32
		addressIsSocket uint32
	}
	// dcgmVersionInfo_v2: "version:4.4.2;arch:x86_64;…"
	versionInfo struct {
		version uint32
		raw     [512]byte
	}
	// dcgmHealthSetParams_v2
	healthSet struct {
		version  uint32
		group    uintptr
		systems  uint32
		interval int64   // µs between reads of the driver
		keep     float64 // s
	}
	// dcgmIncidentInfo_t
	incident struct {
		system, health uint32
		msg            [1024]byte
		code           uint32
		group, id      uint32
	}
	// dcgmHealthResponse_v5
	healthResponse struct {
		version, overall, count uint32
		incidents               [maxIncidents]incident
	}
	// dcgmPolicy_v1
	policyInfo struct {
		version, condition, mode, isolation, action, validation, response uint32
		parms                                                             [7]struct {
			tag   uint32
			value int64
		}
	}
	// dcgmDeviceAttributes_v3; only the identifiers are of use
	deviceAttributes struct {
		version   uint32
		clocks    [2 + 3*256]uint32
		thermals  [3]uint32
		power     [6]uint32
		idVersion uint32
		brand     [256]byte
		name      [256]byte
		pci       [256]byte
		serial    [256]byte
		uuid      [256]byte
		vbios     [256]byte
		inforom   [256]byte
		device    [2]uint32
		driver    [256]byte
		rest      [1 + 5 + 4]uint32
	}
)

const (
	maxIncidents  = 1024 // DCGM_GROUP_MAX_ENTITIES_V2
	maxGPUs       = 32   // DCGM_MAX_NUM_DEVICES
	allGPUs       = 0x7fffffff
	entityGPU     = 1 // DCGM_FE_GPU
	onlySupported = 1 // DCGM_GEGE_FLAG_ONLY_SUPPORTED
	everyWatch    = 0xffffffff
	modeAuto      = 1 // DCGM_OPERATION_MODE_AUTO
)

// structVersion is MAKE_DCGM_VERSION.
func structVersion[T any](v uint32) uint32 {
	var x T
	return uint32(unsafe.Sizeof(x)) | v<<24
}

func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// returns are the words for what a look may be told. Source: dcgm_structs.h, dcgmReturn_enum.
var returns = map[int32]string{
	-1: "bad parameter", -3: "a generic error", -4: "out of memory", -6: "not supported", -7: "the library could not start", -8: "NVML reports an error",
	-10: "not initialized", -11: "timeout", -12: "structure version unknown to this DCGM", -17: "no permission", -18: "GPU is lost", -19: "a GPU requires a reset",
	-21: "the host engine cannot be reached", -25: "library not found", -29: "needs root", -31: "more than there is room for", -33: "a module of DCGM is not loaded",
	-44: "the driver is too old", -54: "the host engine is paused", -56: "the host engine could not load NVML", -57: "the driver does not answer the host engine",
}
