package dcgm

import "fmt"

// Exit statuses of dcgmi: the low byte of a negative dcgmReturn_t, so 226 is −30.
// Source: dcgm_structs.h, dcgmReturn_enum.
const (
	ExitErrorFound = 226 // −30 DCGM_ST_NVVS_ERROR: it ran, and found errors
	ExitIsolate    = 205 // −51 DCGM_ST_NVVS_ISOLATE_ERROR: one that asks for isolation
)

var exitWords = map[int]string{
	ExitErrorFound: "it ran and reports an error",
	ExitIsolate:    "it ran and reports an error that asks for isolation",
	203:            "the diagnostic was killed",
	204:            "the diagnostic's program was not found",
	206:            "a plugin of the diagnostic failed",
	215:            "the diagnostic could not be started",
	216:            "the diagnostic wrote what DCGM cannot read",
	217:            "another diagnostic is running",
	235:            "the connection to the host engine was lost",
	238:            "a GPU is lost",
	237:            "a GPU needs a reset",
	239:            "no permission",
	244:            "the versions of dcgmi and the host engine differ",
	245:            "it took too long",
	246:            "the host engine is not initialized",
	248:            "NVML reports an error",
	198:            "there is no such test",
	199:            "the driver does not answer",
	190:            "it was stopped",
}

// ExitText says in words what an exit status of dcgmi means.
func ExitText(status int) string {
	if w, ok := exitWords[status]; ok {
		return fmt.Sprintf("exit status %d: %s", status, w)
	}
	if status > 128 && status < 256 {
		return fmt.Sprintf("exit status %d: DCGM error %d", status, status-256)
	}
	return fmt.Sprintf("exit status %d", status)
}
