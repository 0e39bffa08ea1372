package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/cpu"
	"github.com/assay-gpu/assay/checks/kernel"
	"github.com/assay-gpu/assay/checks/memory"
	"github.com/assay-gpu/assay/checks/timesync"
)

// memoryOf reads the total and the EDAC counters. Files: Linux Documentation/admin-guide/RAS, ABI/testing/sysfs-devices-edac.
func memoryOf(r *recorder) memory.Reading {
	text, err := r.Text("proc/meminfo")
	if err != nil {
		return memory.Reading{Err: "meminfo: " + err.Error()}
	}
	out := memory.Reading{}
	for line := range strings.Lines(text) {
		var kb uint64
		if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &kb); n == 1 {
			out.Have, out.Total = checks.Read, kb*1024
			break
		}
	}
	if out.Have != checks.Read {
		return memory.Reading{Err: "meminfo holds no MemTotal"}
	}
	// The rest of meminfo changes with every look and says nothing here.
	r.got["proc/meminfo"] = fmt.Sprintf("MemTotal: %d kB\n", out.Total/1024)
	out.Modules, out.EDAC, out.EDACErr = modules(r)
	return out
}

// modules reads the error counters of every memory module, or of the controller where it does not tell them apart.
func modules(r *recorder) ([]memory.Module, checks.Availability, string) {
	const root = "sys/devices/system/edac/mc"
	entries, have, why := devices(r, root)
	if have != checks.Read {
		return nil, have, why
	}
	var out []memory.Module
	for _, mc := range entries {
		if !strings.HasPrefix(mc, "mc") {
			continue
		}
		below, err := r.List(root + "/" + mc)
		if err != nil {
			return nil, checks.Unread, mc + ": " + err.Error()
		}
		found := false
		for _, d := range below {
			if !strings.HasPrefix(d, "dimm") && !strings.HasPrefix(d, "rank") {
				continue
			}
			m := memory.Module{Name: mc + "/" + d, Label: r.word("%s/%s/%s/dimm_label", root, mc, d)}
			if err := errorCounts(r, root+"/"+mc+"/"+d+"/dimm_", &m); errors.Is(err, fs.ErrNotExist) {
				continue // a driver that counts by controller only
			} else if err != nil {
				return nil, checks.Unread, m.Name + ": " + err.Error()
			}
			out, found = append(out, m), true
		}
		if !found {
			m := memory.Module{Name: mc}
			if err := errorCounts(r, root+"/"+mc+"/", &m); err != nil {
				return nil, checks.Unread, mc + ": " + err.Error()
			}
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil, checks.NotSupported, ""
	}
	return out, checks.Read, ""
}

func errorCounts(r *recorder, prefix string, m *memory.Module) error {
	for _, c := range []struct {
		name string
		to   *uint64
	}{{"ce_count", &m.Corrected}, {"ue_count", &m.Uncorrected}} {
		text, err := r.Text(prefix + c.name)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if *c.to, err = strconv.ParseUint(strings.TrimSpace(text), 10, 64); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// cpuOf reads the processors at work and the clock source.
func cpuOf(r *recorder) cpu.Reading {
	text, err := r.Text("sys/devices/system/cpu/online")
	if err != nil {
		return cpu.Reading{Err: "online: " + err.Error()}
	}
	n, err := countList(strings.TrimSpace(text))
	if err != nil {
		return cpu.Reading{Err: "online: " + err.Error()}
	}
	out := cpu.Reading{Have: checks.Read, Online: n}
	clock, err := r.Text("sys/devices/system/clocksource/clocksource0/current_clocksource")
	out.Clock = strings.TrimSpace(clock)
	if err != nil {
		out.ClockErr = err.Error()
	}
	return out
}

// countList counts the members of a kernel list such as "0-47,96-143".
func countList(s string) (int, error) {
	total := 0
	for item := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		a, err := strconv.Atoi(first)
		if err != nil {
			return 0, err
		}
		b, err := strconv.Atoi(last)
		if err != nil {
			return 0, err
		}
		if a < 0 || b < a || b > 1<<20 {
			return 0, fmt.Errorf("%q is no list of processors", s)
		}
		total += b - a + 1
	}
	return total, nil
}

func kernelOf(r *recorder) kernel.Reading {
	text, err := r.Text("proc/sys/kernel/tainted")
	if err != nil {
		return kernel.Reading{Err: "tainted: " + err.Error()}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return kernel.Reading{Err: "tainted: " + err.Error()}
	}
	return kernel.Reading{Have: checks.Read, Taint: n}
}

// Of adjtimex(2).
const (
	statusUnsynced = 0x40 // STA_UNSYNC
	stateError     = 5    // TIME_ERROR
)

func timesyncOf(r *recorder) timesync.Reading {
	text, err := r.Text("adjtimex")
	switch {
	case errors.Is(err, fs.ErrPermission):
		return timesync.Reading{Have: checks.NotSupported} // a sandbox that forbids to set the clock often forbids to look
	case err != nil:
		return timesync.Reading{Err: "adjtimex: " + err.Error()}
	}
	v := fields(text)
	if _, have := v["status"]; !have {
		return timesync.Reading{Err: fmt.Sprintf("adjtimex said %q", text)}
	}
	return timesync.Reading{
		Have: checks.Read, Synced: v["status"]&statusUnsynced == 0 && v["state"] != stateError,
		MaxError: time.Duration(v["maxerror"]) * time.Microsecond,
	}
}
