package driver

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// ID is the check's catalog id.
const ID = "driver"

// JudgeCall turns the last round of calls on one GPU into a finding. It does no I/O. A GPU that is lost, one that is
// blocked, and one on which a call passed its deadline in hungChildren fresh children running (policy
// agent.hung_children) are hard faults that a reboot clears. A call that hung less often proves nothing yet. The subject
// names the GPU; the reason does not do so again.
// Source: NVML_ERROR_GPU_IS_LOST; a driver call in uninterruptible sleep ends with its process only at a reboot.
func JudgeCall(gpu checks.GPU, c Call, hungChildren int) checks.Finding {
	f := checks.Finding{Check: ID, Subject: gpu.Subject()}
	hard := func(format string, args ...any) checks.Finding {
		f.Verdict, f.Action, f.Hard = checks.Fail, checks.Reboot, true
		f.Reason = fmt.Sprintf(format, args...)
		return f
	}
	switch {
	case c.Lost:
		return hard("lost: the driver reaches it no more")
	case c.Hung != "" && c.HungCount >= hungChildren:
		return hard("%s hung in %d fresh processes in a row", c.Hung, c.HungCount)
	case c.Blocked:
		return hard("not asked any more until the next boot: %s", blockedBy(c))
	case c.Hung != "":
		f.Action = checks.Watch
		f.Reason = fmt.Sprintf("%s hung in %d of %d processes", c.Hung, c.HungCount, hungChildren)
	case c.Err != "":
		f.Reason = "not read: " + strings.TrimPrefix(c.Err, "not read: ")
	default:
		f.Verdict, f.Reason = checks.Pass, "the driver answers"
	}
	return f
}

func blockedBy(c Call) string {
	switch {
	case c.Hung != "":
		return c.Hung + " hung"
	case c.Err != "":
		return c.Err
	}
	return "an earlier call hung"
}

// JudgeInit turns loading and starting NVML into a finding about the node. It does no I/O. A child that outlives SIGKILL
// by policy agent.stuck_child, and an nvmlInit that hung in hungChildren fresh children running, are hard faults that a
// reboot clears. A library that is missing, or an error from it, proves nothing about the hardware.
func JudgeInit(node string, i Init, hungChildren int) checks.Finding {
	f := checks.Finding{Check: ID, Subject: checks.Subject{Kind: checks.KindNode, Node: node}}
	hard := func(format string, args ...any) checks.Finding {
		f.Verdict, f.Action, f.Hard = checks.Fail, checks.Reboot, true
		f.Reason = fmt.Sprintf(format, args...)
		return f
	}
	switch {
	case i.ChildStuck != "":
		return hard("a process that called %s is still there after SIGKILL", i.ChildStuck)
	case i.HungCount > 0 && i.HungCount >= hungChildren:
		return hard("nvmlInit hung in %d fresh processes in a row", i.HungCount)
	case i.HungCount > 0:
		f.Action = checks.Watch
		f.Reason = fmt.Sprintf("nvmlInit hung in %d of %d processes", i.HungCount, hungChildren)
	case !i.OK && i.Err != "":
		f.Reason = "NVML could not be started: " + i.Err
	case !i.OK:
		f.Reason = "NVML was not started"
	default:
		f.Verdict, f.Reason = checks.Pass, "NVML starts"
	}
	return f
}
