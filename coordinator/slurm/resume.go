package slurm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Resume puts a node that we drained back in service. The node is read again first: unless it is still drained, with the
// reason, user and time of expect, nothing is done and the error is a *ChangedError. A node that is rebooting, or whose
// slurmd does not answer, is refused: it would be resumed unseen.
func (c *Client) Resume(ctx context.Context, node string, expect Expect) error {
	n, err := c.one(ctx, "resume", node)
	if err != nil {
		return err
	}
	if err := expectDrained("resume", n, expect); err != nil {
		return err
	}
	if n.Has(FlagNotResponding) || n.Away() || n.Has(FlagRebootRequested) || n.Has(FlagInvalidReg) {
		return &RefusedError{Verb: "resume", Target: node, Msg: "its state is " + StateText(n), Advice: "wait until slurmd answers on it with all its GPUs"}
	}
	if err := c.change(ctx, "resume", c.cfg.Scontrol, "update", "nodename="+node, "state=resume"); err != nil {
		return err
	}
	if n, err = c.one(ctx, "resume", node); err != nil {
		return err
	}
	if n.Drained() {
		return &ChangedError{Verb: "resume", Target: node, What: fmt.Sprintf("drained again right after, by %s: %q", n.ReasonUser, n.Reason)}
	}
	return nil
}

// expectDrained checks that n is drained as expected.
func expectDrained(verb string, n Node, expect Expect) error {
	if !n.Drained() {
		return &ChangedError{Verb: verb, Target: n.Name, What: "it is not drained, but " + StateText(n), Done: verb == "resume"}
	}
	if why := expect.differs(n); why != "" {
		return &ChangedError{Verb: verb, Target: n.Name, What: why}
	}
	return nil
}

// StateText writes a node's state as scontrol does: "IDLE+DRAIN".
func StateText(n Node) string {
	parts := n.Flags
	if n.State != "" {
		parts = append([]string{n.State}, n.Flags...)
	}
	return strings.Join(parts, "+")
}

// Reboot asks Slurm to reboot a node that we drained, once no job is on it. Plain: with ASAP or nextstate Slurm would
// clear the drain when the node returns. A node that is rebooting already, or that has booted after since, is left alone:
// whoever asked may have died before he could note that he had.
func (c *Client) Reboot(ctx context.Context, node string, since time.Time, expect Expect) error {
	s, err := c.Settings(ctx)
	if err != nil {
		return err
	}
	switch {
	case s.ResumeTimeout < MinResumeTimeout:
		return &RefusedError{Verb: "reboot", Target: node, Msg: fmt.Sprintf("ResumeTimeout is %v: Slurm would set the node DOWN while it boots", s.ResumeTimeout),
			Advice: "set ResumeTimeout=1800 or more in slurm.conf and run `scontrol reconfigure`"}
	case s.RebootProgram == "":
		return &RefusedError{Verb: "reboot", Target: node, Msg: "slurm.conf names no RebootProgram", Advice: "set RebootProgram=/usr/libexec/assay/reboot or /sbin/reboot"}
	}
	n, err := c.one(ctx, "reboot", node)
	if err != nil {
		return err
	}
	if n.BootTime.After(since) {
		return nil
	}
	if err := expectDrained("reboot", n, expect); err != nil {
		return err
	}
	switch {
	case n.Has(FlagRebootRequested) || n.Has(FlagRebootIssued):
		return nil
	case n.Has(FlagNotResponding):
		return &RefusedError{Verb: "reboot", Target: node, Msg: "slurmd does not answer, so Slurm would never reboot it", Advice: "power-cycle it by its BMC"}
	}
	return c.change(ctx, "reboot", c.cfg.Scontrol, "reboot", node)
}

func isRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}
