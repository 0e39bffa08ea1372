package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-gpu/assay/agent/sim/dcgmlib"
)

// DCGMs are the values of NodeFaults.DCGM: empty for a node without DCGM; a host engine that runs; one that does not; one that
// takes calls and never answers.
var DCGMs = []string{"", "up", "down", "hang"}

// Diags are the values of NodeFaults.Diag, what dcgmi diag does: it tests; it skips every test of hardware; it cannot run; it
// never ends; it is killed in the middle of its output.
var Diags = []string{"", "skip", "error", "hang", "cut"}

// dcgmError is what DCGM's table says of an error code that a GPU may have. Source: dcgm_errors.h of DCGM 4.6.0.
type dcgmError struct {
	severity, category int
	system             int // the health watch that reports it
	text               string
}

var dcgmErrors = map[int]dcgmError{
	4:   {2, 10, 0x10, "%d double-bit ECC error(s) detected in the volatile counters of GPU %d"},
	14:  {4, 11, 0x2, "Detected %d NvLink(s) of GPU %d in the down state"},
	29:  {5, 8, 0x200, "%d: persistence mode for GPU %d is disabled"},
	52:  {2, 10, 0x10, "Found %d faulty memory element(s) on GPU %d"},
	85:  {6, 10, 0x10, "%d row remap(s) pending on GPU %d"},
	120: {2, 15, 0x200, "%d GPU(s) fell off the bus: GPU %d"},
}

// placeDCGM makes DIR/libdcgm.so.4, DIR/dcgmi and what they answer from be what the state asks for, or not be there.
func (s State) placeDCGM(dir string) error {
	at := In(dir)
	if s.DCGM == "" {
		for _, p := range []string{at.DCGMLibrary, at.Dcgmi, filepath.Join(dir, "dcgm.state")} {
			if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	}
	lib := filepath.Join(filepath.Dir(s.Library), "libdcgm.so.4")
	if _, err := os.Stat(lib); err != nil || lib == at.DCGMLibrary {
		lib = filepath.Join(dir, "libdcgm.sim.so")
		if _, err := os.Stat(lib); err != nil {
			if err := dcgmlib.Build(lib); err != nil {
				return err
			}
		}
	}
	program := filepath.Join(filepath.Dir(s.Library), "dcgmi")
	if _, err := os.Stat(program); err != nil || program == at.Dcgmi {
		if program, err = os.Executable(); err != nil {
			return err
		}
	}
	if err := replace(filepath.Join(dir, "dcgm.state"), []byte(s.dcgmState())); err != nil {
		return err
	}
	if err := link(lib, at.DCGMLibrary); err != nil {
		return err
	}
	return link(program, at.Dcgmi)
}

// link makes at a link to the file to, whatever it was.
func link(to, at string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	if was, err := os.Readlink(at); err == nil && was == to {
		return nil
	}
	tmp := at + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(to, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, at)
}

// dcgmState is what the library answers from, as dcgmlib/src/dcgm.c reads it.
func (s State) dcgmState() string {
	var b strings.Builder
	b.WriteString("version 4.4.2\n")
	if s.DCGM != "down" {
		b.WriteString("engine up\n")
	}
	if s.DCGM == "hang" {
		b.WriteString("hang dcgmHealthCheck\n")
	}
	for _, g := range s.GPUs {
		if g.Missing {
			continue
		}
		fmt.Fprintf(&b, "gpu %d %s %s\n", g.Index, g.UUID, "0000"+strings.ToUpper(g.PCI))
		if e, ok := dcgmErrors[g.dcgmCode()]; ok {
			result := 20
			if e.severity == 5 {
				result = 10
			}
			fmt.Fprintf(&b, "incident %d %d %d 1 %d %s\n", e.system, result, g.dcgmCode(), g.Index, fmt.Sprintf(e.text, 1, g.Index))
		}
	}
	return b.String()
}

// dcgmCode is the error that DCGM sees on the GPU.
func (g GPU) dcgmCode() int {
	switch {
	case g.DCGMError != 0:
		return g.DCGMError
	case g.Lost:
		return 120
	case g.RemapPending:
		return 85
	}
	return 0
}

// Dcgmi is dcgmi on the simulated node in $ASSAY_SIM_DIR: it knows diag -j, and writes what DCGM 4 would. Its result is the
// exit status.
func Dcgmi(args []string, stdout, stderr io.Writer) int {
	s, err := Read(os.Getenv(EnvDir))
	if err != nil {
		fmt.Fprintln(stderr, "dcgmi:", err)
		return 1
	}
	if len(args) == 0 || args[0] != "diag" {
		fmt.Fprintln(stderr, "dcgmi: only diag is simulated")
		return 1
	}
	if s.DCGM != "up" || s.Diag == "error" {
		why := "Error: Unable to complete diagnostic for group 2147483647. Return: (-30) : The Nvidia Validation Suite returned an error."
		status := 226
		if s.DCGM != "up" {
			why, status = "Error: Unable to establish a connection to the specified host: localhost", 235
		}
		_ = json.NewEncoder(stdout).Encode(map[string]any{"DCGM Diagnostic": map[string]any{"runtime_error": why, "version": "4.4.2"}})
		return status
	}
	if s.Diag == "hang" {
		for {
			time.Sleep(time.Hour)
		}
	}
	report, status := s.diag()
	text, err := json.MarshalIndent(report, "", "\t")
	if err != nil {
		panic(err) // of maps and text
	}
	if s.Diag == "cut" {
		text, status = text[:len(text)/2], 203
	}
	_, _ = stdout.Write(append(text, '\n'))
	return status
}

// diag is the report of a diagnostic of DCGM 4, and dcgmi's exit status with it.
func (s State) diag() (map[string]any, int) {
	status := 0
	var software, memory, entities []any
	for _, g := range s.GPUs {
		if g.Missing {
			continue
		}
		entity := func(result string) map[string]any {
			return map[string]any{"entity_group": "GPU", "entity_group_id": 1, "entity_id": g.Index, "status": result}
		}
		entities = append(entities, map[string]any{"entity_id": g.Index, "serial_num": g.Serial, "device_id": fmt.Sprintf("%04x", models[s.Model].deviceID>>16)})
		soft, mem := entity("Pass"), entity("Pass")
		if s.Diag == "skip" {
			mem = entity("Skip")
		}
		if e, ok := dcgmErrors[g.dcgmCode()]; ok {
			row, result := mem, "Fail"
			switch e.severity {
			case 5:
				row, result = soft, "Warn"
			case 6:
				row = soft
			}
			row["status"] = result
			row["warnings"] = []any{map[string]any{
				"error_id": g.dcgmCode(), "error_category": e.category, "error_severity": e.severity, "warning": fmt.Sprintf(e.text, 1, g.Index),
			}}
			switch {
			case e.severity == 2:
				status = 205
			case status == 0 && result == "Fail":
				status = 226
			}
		}
		software, memory = append(software, soft), append(memory, mem)
	}
	test := func(category, name string, rows []any) map[string]any {
		return map[string]any{"category": category, "tests": []any{map[string]any{"name": name, "results": rows}}}
	}
	return map[string]any{
		"DCGM Diagnostic": map[string]any{"test_categories": []any{test("Deployment", "software", software), test("Hardware", "memory", memory)}},
		"entity_groups":   []any{map[string]any{"entity_group": "GPU", "entity_group_id": 1, "entities": entities}},
		"metadata":        map[string]any{"version": "4.4.2", "Driver Version Detected": s.Driver},
	}, status
}
