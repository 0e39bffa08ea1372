package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/cubin"
	"github.com/assay-gpu/assay/golden/kernels"
)

// An archRow is what a GPU of a compute capability runs of one kernel.
type archRow struct {
	Kernel       string `json:"kernel"`
	Unit         string `json:"unit"`
	Code         string `json:"code,omitempty"` // cubin or jit; empty: it does not run there
	Target       string `json:"target,omitempty"`
	Cubin        string `json:"cubin,omitempty"`
	Unaudited    string `json:"unaudited,omitempty"` // why the driver assembles it
	Skip         string `json:"skip,omitempty"`      // why it does not run there
	Registers    int    `json:"registers,omitempty"`
	Shared       int    `json:"shared_bytes,omitempty"`
	Instructions int    `json:"instructions_a_step,omitempty"`
	Straight     bool   `json:"straight,omitempty"`
	Opcodes      string `json:"opcodes_a_step,omitempty"`
	Blind        string `json:"blind,omitempty"` // what it cannot see
}

// archRows gives the rows of all kernels in the suite's order.
func archRows(capability int) []archRow {
	var out []archRow
	for _, k := range kernels.All() {
		r := archRow{Kernel: k.ID, Unit: k.Unit, Blind: k.Blind}
		if r.Skip = k.Skip(capability); r.Skip != "" {
			out = append(out, r)
			continue
		}
		c, why := cubin.For(k, capability)
		if why != "" {
			r.Code, r.Unaudited = golden.JIT, why
		} else {
			r.Code, r.Target, r.Cubin, r.Registers, r.Shared = golden.Cubin, c.Target, c.Digest, c.Registers, c.Shared
			r.Instructions, r.Straight, r.Opcodes = c.Instructions, c.Straight, c.Opcodes
		}
		out = append(out, r)
	}
	return out
}

// parseArch reads sm_80, or sm_90a, which is the same GPU.
func parseArch(s string) (int, error) {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(s, "a"), "sm_")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 10 || n > 999 {
		return 0, fmt.Errorf("--arch %q: want a compute capability as sm_80", s)
	}
	return n, nil
}

func printArch(w io.Writer, arch string, asJSON bool) error {
	capability, err := parseArch(arch)
	if err != nil {
		return usage(err)
	}
	rows := archRows(capability)
	if asJSON {
		enc := json.NewEncoder(w)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	audited, jit := 0, 0
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "KERNEL\tCODE\tREGISTERS\tSHARED\tSTEP\tDECLARED OPCODES A STEP")
	for _, r := range rows {
		switch r.Code {
		case golden.Cubin:
			audited++
			straight := ""
			if !r.Straight {
				straight = ", branches"
			}
			fmt.Fprintf(tw, "%s\tcubin %s\t%d\t%d\t%d%s\t%s\n", r.Kernel, r.Target, r.Registers, r.Shared, r.Instructions, straight, r.Opcodes)
		case golden.JIT:
			jit++
			fmt.Fprintf(tw, "%s\tPTX, unaudited\t\t\t\t\n", r.Kernel)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nCompute capability %d.%d: %d kernels run audited machine code, %d run PTX that the driver assembles, %d do not run.\n", capability/10, capability%10, audited, jit, len(rows)-audited-jit)
	if reason := firstReason(rows); reason != "" {
		fmt.Fprintf(w, "Why PTX: %s.\n", reason)
	}
	fmt.Fprintln(w, "\nNot covered:")
	for _, r := range rows {
		text := r.Blind
		if r.Skip != "" {
			text = "does not run: " + r.Skip
		}
		if _, err := fmt.Fprintf(w, "  %s (%s): %s\n", r.Kernel, r.Unit, text); err != nil {
			return err
		}
	}
	return nil
}

// firstReason is why kernels run PTX: the same for all but in a damaged program.
func firstReason(rows []archRow) string {
	for _, r := range rows {
		if r.Unaudited != "" {
			return r.Unaudited
		}
	}
	return ""
}
