package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Patterns of what a kernel-log line may tell of users and machines: process names and ids, MAC and IP addresses, host names.
var private = []*regexp.Regexp{
	regexp.MustCompile(`name=[^,\s]+`),
	regexp.MustCompile(`\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b`),
	regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b`),
}

// Redact replaces what names the machine, its parts and its users: node name, boot id, serials and UUIDs, each by a word
// made from it, so that the same name stays the same; and process names and addresses in the kernel log. salt keeps the
// words from being guessed. The redacted capture is judged like the original.
func (c Capture) Redact(salt []byte) (Capture, error) {
	words := map[string]string{}
	add := func(kind, s string) {
		if s != "" {
			sum := sha256.Sum256(append(append([]byte(kind), salt...), s...))
			words[s] = kind + hex.EncodeToString(sum[:6])
		}
	}
	add("node-", c.Node)
	add("boot-", c.BootID)
	add("serial-", c.Snapshot.NodeSerial)
	if c.Expected != nil {
		add("serial-", c.Expected.NodeSerial)
	}
	gpus := c.Snapshot.Inventory().GPUs
	if c.Expected != nil {
		gpus = append(gpus, c.Expected.GPUs...)
	}
	for _, g := range gpus {
		add("GPU-", g.UUID)
		add("serial-", g.Serial)
	}
	// Longer names first, so that one that is part of another does not cut it.
	from := make([]string, 0, len(words))
	for w := range words {
		from = append(from, w)
	}
	slices.SortFunc(from, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, w := range from {
		pairs = append(pairs, w, words[w])
	}
	replace := strings.NewReplacer(pairs...)

	out := c
	out.Expected = nil
	for _, p := range []struct{ from, to any }{{c.CaptureMeta, &out.CaptureMeta}, {c.Snapshot, &out.Snapshot}, {c.Expected, &out.Expected}} {
		data, err := json.Marshal(p.from)
		if err != nil {
			return c, fmt.Errorf("redact: %w", err)
		}
		if err := json.Unmarshal([]byte(replace.Replace(string(data))), p.to); err != nil {
			return c, fmt.Errorf("redact: %w", err)
		}
	}
	out.Kernel = make([]KernelRecord, len(c.Kernel))
	for i, r := range c.Kernel {
		r.Line = replace.Replace(r.Line)
		for _, re := range private {
			r.Line = re.ReplaceAllStringFunc(r.Line, func(m string) string {
				if k, _, ok := strings.Cut(m, "="); ok {
					return k + "=redacted"
				}
				return "redacted"
			})
		}
		out.Kernel[i] = r
	}
	out.Redacted = true
	return out, nil
}
