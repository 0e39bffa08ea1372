package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/hostlog"
	"github.com/assay-gpu/assay/checks/kernlog"
)

// addresses are IP addresses, as the options of a mount name its server.
var addresses = regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)

// private are patterns of what a kernel-log line may tell of users and machines, beside the names that the capture knows:
// what was killed or stuck, MAC and IP addresses, serials and UUIDs of boards that are no longer there. What
// the first group of a pattern holds stays.
var private = []*regexp.Regexp{
	regexp.MustCompile(`(Killed process \d+ )\([^\n]*\)`),
	regexp.MustCompile(`(stuck for \d+s! )\[[^\n]*\]`),
	regexp.MustCompile(`((?i:serial number)(?: is|:) )[^\s.]+`),
	regexp.MustCompile(`(GPU-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`),
	regexp.MustCompile(`()\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b`),
	regexp.MustCompile(`()` + addresses.String()),
}

// redactLine leaves out of one record of the kernel log what names users and machines. Of a line that no check reads
// nothing is left: a command line, an audit record or a file server's name may stand in it.
func redactLine(line string, names *strings.Replacer) string {
	if !kernlog.Holds([]byte(line)) {
		return "redacted"
	}
	if e, ok := hostlog.Parse(line); ok && e.Kind == hostlog.HungTask && !hostlog.OfDriver(e.Task) {
		line = strings.Replace(line, "task "+e.Task+":", "task redacted:", 1)
	}
	line = names.Replace(redactProcess(line))
	for _, re := range private {
		line = re.ReplaceAllString(line, "${1}redacted")
	}
	return line
}

// nameBytes is how long a process name is at most. Linux, TASK_COMM_LEN, without its closing zero.
const nameBytes = 15

// redactProcess leaves out the process names of the driver's lines. One may hold ", ", which then is not the end of it: what is a
// field of its own within a name's length goes too, but for a channel, which is how the driver's words often begin. That the driver
// knew none stays, since it decides how the rest is read.
func redactProcess(line string) string {
	const key = "name="
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, key)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(key)
		line = rest
		if bare := strings.TrimPrefix(rest, "'"); strings.HasPrefix(bare, "<unknown>") || rest == "" {
			continue
		}
		end := strings.IndexAny(rest, ",\n")
		for end >= 0 && strings.HasPrefix(rest[end:], ", ") && !strings.HasPrefix(rest[end+2:], "Ch ") {
			more := strings.IndexByte(rest[end+2:], ',')
			if more < 0 || end+2+more > nameBytes {
				break
			}
			end += 2 + more
		}
		if end != 0 {
			b.WriteString("redacted")
		}
		if end < 0 {
			return b.String()
		}
		line = rest[end:]
	}
}

// Redact replaces what names the machine, its parts and its users: node name, boot id, serials and UUIDs, each by a word
// made from it, so that the same name stays the same; process names and file servers likewise; process names and
// addresses in the kernel log, and all of its lines that no check reads; and what user checks say and are given. salt keeps the
// words from being guessed. The redacted capture is judged like the original, but for the words of reasons.
func (c Capture) Redact(salt []byte) (Capture, error) {
	c = c.ForNode() // overrides go by the node's name, which is lost
	words := map[string]string{}
	word := func(kind, s string) string {
		sum := sha256.Sum256(append(append([]byte(kind), salt...), s...))
		return kind + hex.EncodeToString(sum[:6])
	}
	add := func(kind, s string) {
		if s != "" {
			words[s] = word(kind, s)
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
	if c.Beside.Golden != nil {
		for _, g := range c.Beside.Golden.GPUs {
			add("GPU-", g.UUID)
			add("serial-", g.Serial)
		}
	}
	for _, d := range c.Snapshot.Host.NVMe.Disks {
		add("serial-", d.Serial)
	}
	for _, id := range c.Snapshot.Host.NVMe.Learned { // model and serial
		add("serial-", id[strings.LastIndexByte(id, ' ')+1:])
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
	host, texts := redactHost(c.Snapshot.Host, c.Snapshot.Texts, word)
	c.Snapshot.Host = host
	c.Beside = redactBeside(c.Beside, c.Policy, word)
	out.Beside, out.Policy = catalog.Beside{}, redactPolicy(c.Policy, word)
	for _, p := range []struct{ from, to any }{{c.CaptureMeta, &out.CaptureMeta}, {c.Snapshot, &out.Snapshot}, {c.Expected, &out.Expected}, {c.Beside, &out.Beside}} {
		data, err := json.Marshal(p.from)
		if err != nil {
			return c, fmt.Errorf("redact: %w", err)
		}
		if err := json.Unmarshal([]byte(replace.Replace(string(data))), p.to); err != nil {
			return c, fmt.Errorf("redact: %w", err)
		}
	}
	if texts != nil {
		out.Snapshot.Texts = make(map[string]string, len(texts))
		for name, text := range texts {
			out.Snapshot.Texts[name] = replace.Replace(text)
		}
	}
	out.Kernel = make([]KernelRecord, len(c.Kernel))
	for i, r := range c.Kernel {
		r.Line = redactLine(r.Line, replace)
		out.Kernel[i] = r
	}
	out.Redacted = true
	return out, nil
}

// procName finds the name in /proc/PID/stat, and in status.
var procName = regexp.MustCompile(`(?s)\(.*\)|(?m)^Name:\t.*$`)

// redactHost replaces the names of processes and of file servers in a host's readings and the texts they are from. They are
// any words at all, so that each is replaced where it stands, never elsewhere.
func redactHost(h catalog.HostState, texts map[string]string, word func(kind, s string) string) (catalog.HostState, map[string]string) {
	server := func(device string) string {
		if name, path, ok := strings.Cut(device, ":"); ok && !strings.HasPrefix(device, "/dev/") {
			return word("server-", name) + ":" + path
		}
		return device
	}
	h.Mounts.Mounts, h.Processes.Sleeping = slices.Clone(h.Mounts.Mounts), slices.Clone(h.Processes.Sleeping)
	for i, m := range h.Mounts.Mounts {
		h.Mounts.Mounts[i].Device = server(m.Device)
	}
	for i, p := range h.Processes.Sleeping {
		h.Processes.Sleeping[i].Name = word("process-", p.Name)
	}
	if texts == nil {
		return h, nil
	}
	out := make(map[string]string, len(texts))
	for name, text := range texts {
		base := path.Base(name)
		switch {
		case base == "mounts":
			var lines []string
			for line := range strings.Lines(text) {
				device, rest, _ := strings.Cut(line, " ")
				lines = append(lines, server(device)+" "+rest)
			}
			text = addresses.ReplaceAllString(strings.Join(lines, ""), "redacted")
		case strings.HasPrefix(name, "proc/") && (base == "stat" || base == "status"):
			text = procName.ReplaceAllStringFunc(text, func(m string) string {
				if m[0] == '(' {
					return "(" + word("process-", m[1:len(m)-1]) + ")"
				}
				return "Name:\t" + word("process-", strings.TrimPrefix(m, "Name:\t"))
			})
		}
		out[name] = text
	}
	return h, out
}
