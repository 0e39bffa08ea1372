package thermal

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the check's catalog id.
const ID = "thermal"

// Judge turns a reading into a finding. It does no I/O. Its faults are soft: hot hardware protects itself, and a check of
// clocks says what that costs.
func Judge(gpu checks.GPU, r Reading, p policy.Thermal) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	if r.Core.read() && r.Core.C <= 0 { // gpud found such readings unreliable
		r.Core = Degrees{Err: fmt.Sprintf("reads %d °C, which is not reliable", r.Core.C)}
	}
	if r.Memory.read() && r.Memory.C <= 0 { // boards that do not tell it give 0
		r.Memory = Degrees{Have: checks.NotSupported}
	}
	if !r.Core.read() && !r.Margin.read() {
		if r.Core.Have == checks.NotSupported {
			f.Verdict, f.Reason = checks.NotApplicable, "this GPU tells no temperature"
			return f
		}
		f.Reason = "core temperature not read"
		if r.Core.Err != "" {
			f.Reason += ": " + r.Core.Err
		}
		return f
	}
	f.Evidence = evidence(r)
	var faults, watch []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }

	left, limit, known := r.left()
	switch {
	case known && left <= p.MinMargin:
		fault("core %d °C from %s, %d or less is a fault", left, limit, p.MinMargin)
	case r.Margin.read() && r.OperatingMargin.read() && r.Margin.C <= r.OperatingMargin.C,
		!r.Margin.read() && r.Operating.read() && r.Core.C > r.Operating.C:
		watch = append(watch, "core beyond its maximum operating temperature")
	}
	if p.MaxCore > 0 && r.Core.read() && r.Core.C > p.MaxCore {
		fault("core at %d °C, above %d °C by policy", r.Core.C, p.MaxCore)
	}
	if r.Memory.read() && r.MemoryMax.read() && r.Memory.C > r.MemoryMax.C {
		fault("memory at %d °C, above its maximum operating temperature of %d °C", r.Memory.C, r.MemoryMax.C)
	}
	if p.MaxMemory > 0 && r.Memory.read() && r.Memory.C > p.MaxMemory {
		fault("memory at %d °C, above %d °C by policy", r.Memory.C, p.MaxMemory)
	}
	switch {
	case len(faults) > 0:
		f.Verdict, f.Action, f.Reason = checks.Fail, checks.Drain, strings.Join(faults, "; ")
	case !known && p.MaxCore == 0:
		f.Reason = fmt.Sprintf("core at %d °C; the GPU tells no limit to judge it by", r.Core.C)
	case r.Memory.Have == checks.Unread:
		f.Reason = "memory temperature not read"
		if r.Memory.Err != "" {
			f.Reason += ": " + r.Memory.Err
		}
	case r.Memory.read() && r.MemoryMax.Have == checks.Unread && p.MaxMemory == 0:
		f.Reason = fmt.Sprintf("memory at %d °C; its limit was not read", r.Memory.C)
	case len(watch) > 0:
		f.Verdict, f.Action, f.Reason = checks.Pass, checks.Watch, strings.Join(watch, "; ")
	case known:
		f.Verdict, f.Reason = checks.Pass, fmt.Sprintf("core %d °C from %s", left, limit)
	default:
		f.Verdict, f.Reason = checks.Pass, fmt.Sprintf("core at %d °C", r.Core.C)
	}
	return f
}

// left is how many degrees remain until the hardware slows the core down, and what that limit is; known is false when the
// GPU does not tell.
func (r Reading) left() (degrees int, limit string, known bool) {
	switch {
	case r.Margin.read() && r.SlowdownMargin.read():
		return r.Margin.C - r.SlowdownMargin.C, fmt.Sprintf("slowdown at a margin of %d °C", r.SlowdownMargin.C), true
	case r.Margin.read():
		return r.Margin.C, "slowdown by its own margin", true
	case r.Core.read() && r.Slowdown.read() && r.Slowdown.C > 0:
		return r.Slowdown.C - r.Core.C, fmt.Sprintf("slowdown at %d °C", r.Slowdown.C), true
	}
	return 0, "", false
}

func evidence(r Reading) string {
	var out []string
	for _, d := range []struct {
		what string
		Degrees
	}{
		{"core", r.Core}, {"memory", r.Memory}, {"margin", r.Margin}, {"slowdown_margin", r.SlowdownMargin}, {"operating_margin", r.OperatingMargin},
		{"slowdown", r.Slowdown}, {"operating", r.Operating}, {"memory_max", r.MemoryMax},
	} {
		if d.read() {
			out = append(out, fmt.Sprintf("%s=%d", d.what, d.C))
		}
	}
	return strings.Join(out, " ")
}
