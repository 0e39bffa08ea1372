package agent

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
)

// A Capture is everything a check reads, at one moment. Judging it again gives the same findings, anywhere.
type Capture struct {
	CaptureMeta
	Snapshot catalog.Snapshot
	Beside   catalog.Beside // what was read beside the snapshot
	Kernel   []KernelRecord
	Events   []DriverEvent // what the driver told beside the kernel log, as the daemon heard it in this boot
	Expected *checks.Inventory
	Policy   policy.Policy
}

// CaptureMeta says where a capture is from and what could not be read.
type CaptureMeta struct {
	Node        string    `json:"node"`
	BootID      string    `json:"boot_id"`
	At          time.Time `json:"at"`
	Version     string    `json:"version"` // of the program that made it
	SnapshotErr string    `json:"snapshot_err,omitempty"`
	KernelErr   string    `json:"kernel_err,omitempty"`
	Redacted    bool      `json:"redacted,omitempty"`
	Tree        aer.Tree  `json:"pci_tree,omitzero"`

	Learned policy.Set `json:"learned,omitzero"` // what most nodes of the product show, as the control plane last said: it fills in what the policy leaves open
}

// ForNode gives the capture with its policy as it holds for the node it is of.
func (c Capture) ForNode() Capture {
	c.Policy = c.Policy.ForNode(c.Node, policy.HardwareOf(c.Snapshot.Inventory(), c.Expected), c.Learned)
	return c
}

// Judge judges the capture at a level. Every fault in the kernel log counts: it is the log of one boot.
func (c Capture) Judge(level checks.Level) SuiteResult {
	c = c.ForNode()
	in := SuiteInput{Level: level, Snapshot: c.Snapshot, Err: c.SnapshotErr, KernelOK: c.KernelErr, Expected: c.Expected, Policy: c.Policy}
	if in.KernelOK != "" {
		in.KernelOK = "the kernel log cannot be read: " + in.KernelOK
	}
	in.Snapshot.Node, in.Snapshot.BootID, in.Snapshot.At = c.Node, c.BootID, c.At
	in.Kernel = c.kernelFindings()
	in.Aside = catalog.JudgeBeside(c.Beside, level, c.known(), c.Policy)
	return Judge(in)
}

// kernelFindings are the notable findings of the kernel log and of what the driver told beside it, each device and code once,
// with how often it was seen.
func (c Capture) kernelFindings() []checks.Finding {
	var seen []sighting
	for _, rec := range c.Kernel {
		seen = sight(seen, rec)
	}
	events := make([]catalog.LogEvent, len(seen))
	for i, s := range seen {
		events[i] = s.event
	}
	if c.Policy.XID.NVMLEvents {
		events = withEvents(events, c.Events, c.Policy.Agent.IncidentGap.D())
	}
	return notable(checks.Collapse(catalog.TakeBack(catalog.JudgeLog(events, c.known(), c.Tree, c.Policy))))
}

// known is the hardware that was accepted and that was seen.
func (c Capture) known() checks.Inventory {
	known := c.Snapshot.Inventory()
	if c.Expected != nil {
		known.GPUs = append(slices.Clone(c.Expected.GPUs), known.GPUs...)
	}
	known.Node, known.BootID = c.Node, c.BootID
	return known
}

// Names of a capture's files.
const (
	fileMeta     = "capture.json"
	fileSnapshot = "snapshot.json"
	fileExpected = "expected.json"
	filePolicy   = "policy.json"
	fileBeside   = "beside.json"    // what was read beside the snapshot: DCGM, user checks, golden runs
	fileDiag     = "dcgmi-diag.txt" // what the diagnostic wrote, as it stands
	fileTexts    = "texts.json"     // the files of sysfs and procfs, and the answers of system calls, that the host's readings are from
	fileEvents   = "events.json"    // the driver's events
	fileKernel   = "kernel.log"     // tab separated: sequence number, time, records lost before it, the line with its line breaks as spaces
)

// byProgram stands behind the records lost, in kernel.log, of a record that a program wrote and not the kernel.
const byProgram = " by a program"

// recordOverhead is about what a record takes in kernel.log besides its line, in bytes.
const recordOverhead = 56

// Write puts the capture into dir as files and returns the SHA-256 of each, in hex, by name.
func (c Capture) Write(dir string) (map[string]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	var kernel bytes.Buffer
	size := 0
	for _, r := range c.Kernel {
		size += len(r.Line) + recordOverhead
	}
	kernel.Grow(size)
	oneLine := strings.NewReplacer("\n", " ", "\r", " ")
	for _, r := range c.Kernel {
		by := ""
		if r.Foreign {
			by = byProgram
		}
		fmt.Fprintf(&kernel, "%d\t%s\t%d%s\t%s\n", r.Seq, r.At.UTC().Format(time.RFC3339Nano), r.Lost, by, oneLine.Replace(r.Line))
	}
	files := map[string][]byte{fileKernel: kernel.Bytes()}
	beside := c.Beside
	if d := c.Beside.Diag; d != nil {
		apart := *d
		apart.Output, beside.Diag = "", &apart
		files[fileDiag] = []byte(d.Output)
	}
	content := map[string]any{fileMeta: c.CaptureMeta, fileSnapshot: c.Snapshot, filePolicy: c.Policy}
	if c.Expected != nil {
		content[fileExpected] = c.Expected
	}
	if len(c.Snapshot.Texts) > 0 {
		content[fileTexts] = c.Snapshot.Texts
	}
	if len(c.Events) > 0 {
		content[fileEvents] = c.Events
	}
	if !beside.Empty() {
		content[fileBeside] = beside
	}
	for name, v := range content {
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("capture %s: %w", name, err)
		}
		files[name] = append(data, '\n')
	}
	refs, err := writeFiles(dir, files)
	if err != nil {
		return refs, fmt.Errorf("capture: %w", err)
	}
	return refs, nil
}

// writeFiles writes files into dir and returns the SHA-256 of each that is written, in hex, by name.
func writeFiles(dir string, files map[string][]byte) (map[string]string, error) {
	refs := map[string]string{}
	for name, data := range files {
		if err := atomicfile.Write(filepath.Join(dir, name), data, 0o600); err != nil {
			return refs, err
		}
		sum := sha256.Sum256(data)
		refs[name] = hex.EncodeToString(sum[:])
	}
	return refs, nil
}

// ReadCapture reads what Write wrote.
func ReadCapture(dir string) (Capture, error) {
	var c Capture
	for _, f := range []struct {
		name     string
		into     any
		optional bool
	}{{fileMeta, &c.CaptureMeta, false}, {fileSnapshot, &c.Snapshot, false}, {filePolicy, &c.Policy, false}, {fileExpected, &c.Expected, true}, {fileTexts, &c.Snapshot.Texts, true}, {fileBeside, &c.Beside, true}, {fileEvents, &c.Events, true}} {
		found, err := atomicfile.ReadJSON(filepath.Join(dir, f.name), f.into)
		if err != nil {
			return c, fmt.Errorf("capture: %w", err)
		}
		if !found && !f.optional {
			return c, fmt.Errorf("capture %s: it holds no %s: %w", dir, f.name, fs.ErrNotExist)
		}
	}
	if c.Beside.Diag != nil {
		text, err := os.ReadFile(filepath.Join(dir, fileDiag))
		if err != nil {
			return c, fmt.Errorf("capture: %w", err)
		}
		c.Beside.Diag.Output = string(text)
	}
	data, err := os.ReadFile(filepath.Join(dir, fileKernel))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("capture: %w", err)
	}
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 1<<20)
	for n := 1; sc.Scan(); n++ {
		r, ok := parseRecord(sc.Text())
		if !ok {
			return c, fmt.Errorf("capture: %s:%d: want sequence number, time, records lost and the line, tab separated", filepath.Join(dir, fileKernel), n)
		}
		c.Kernel = append(c.Kernel, r)
	}
	return c, sc.Err()
}

func parseRecord(s string) (KernelRecord, bool) {
	f := strings.SplitN(s, "\t", 4)
	if len(f) != 4 {
		return KernelRecord{}, false
	}
	seq, err1 := strconv.ParseUint(f[0], 10, 64)
	at, err2 := time.Parse(time.RFC3339Nano, f[1])
	count, foreign := strings.CutSuffix(f[2], byProgram)
	lost, err3 := strconv.ParseUint(count, 10, 64)
	return KernelRecord{Seq: seq, At: at, Lost: lost, Line: f[3], Foreign: foreign}, err1 == nil && err2 == nil && err3 == nil
}
