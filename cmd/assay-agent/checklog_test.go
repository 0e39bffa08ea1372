package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks"
)

// now is when the logs of these tests are read.
var logRead = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// runCheckLog runs the command and gives what it prints and its exit status.
func runCheckLog(t *testing.T, in []byte, args ...string) (string, int) {
	t.Helper()
	c := newCheckLog(func() time.Time { return logRead })
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetIn(bytes.NewReader(in))
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.Execute()
	var e *exitError
	switch {
	case err == nil:
		return out.String(), 0
	case errors.As(err, &e):
		if e.err != nil {
			fmt.Fprintln(&out, "stderr:", e.err)
		}
		return out.String(), e.code
	}
	t.Fatal(err)
	return "", 0
}

// TestCheckLog judges logs through the command: file=NAME of testdata/kernel-log, or the input; json prints what counts of
// each finding; gpu=ADDRESS below=PORT is the machine's PCI tree.
func TestCheckLog(t *testing.T) {
	datadriven.Walk(t, "testdata/checklog", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			in := []byte(d.Input)
			var file, gpu, below string
			if d.MaybeScanArgs(t, "file", &file) {
				b, err := os.ReadFile(filepath.Join("testdata/kernel-log", file))
				if err != nil {
					t.Fatal(err)
				}
				in = b
			}
			if d.HasArg("escaped") {
				in = unescape(t, d.Input)
			}
			args := []string{"-"}
			if d.MaybeScanArgs(t, "gpu", &gpu) {
				d.ScanArgs(t, "below", &below)
				args = append(args, "--sysfs", pciTree(t, gpu, below))
			}
			if d.HasArg("json") {
				args = append(args, "--json")
			}
			out, code := runCheckLog(t, in, args...)
			if d.HasArg("json") {
				out = brief(t, out)
			}
			return fmt.Sprintf("%sexit %d\n", out, code)
		})
	})
}

// pciTree makes a sysfs that shows one GPU below one port.
func pciTree(t *testing.T, gpu, port string) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "devices/pci0000:00", port, gpu)
	all := filepath.Join(root, "bus/pci/devices")
	for _, d := range []string{dir, all} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"vendor": "0x10de\n", "class": "0x030200\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../../devices/pci0000:00/"+port+"/"+gpu, filepath.Join(all, gpu)); err != nil {
		t.Fatal(err)
	}
	return root
}

// unescape reads input whose lines are Go strings without their quotes, one after the other, with \n where a line ends.
func unescape(t *testing.T, in string) []byte {
	t.Helper()
	var out []byte
	for line := range strings.Lines(in) {
		s, err := strconv.Unquote(`"` + strings.TrimSuffix(line, "\n") + `"`)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, s...)
	}
	return out
}

// brief prints of each finding, in JSON, what identifies and judges it.
func brief(t *testing.T, out string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(out) {
		var f checks.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			if strings.HasPrefix(line, "stderr:") {
				b.WriteString(line)
				continue
			}
			t.Fatalf("%q is no finding: %v", line, err)
		}
		at := "-"
		if !f.At.IsZero() {
			at = f.At.Format("2006-01-02T15:04:05.999999Z")
		}
		fmt.Fprintf(&b, "%s boot=%q %s %d %s %s %s hard=%t secondary=%t count=%d\n", at, f.BootID, f.Check, f.Code, f.Subject.Key(), f.Verdict, f.Action, f.Hard, f.Secondary, f.Count)
	}
	return b.String()
}
