package hostlog

import (
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// parseDisk reads what the NVMe driver and the file systems say of a disk.
func parseDisk(line string) (Event, bool) {
	if i := strings.Index(line, "nvme nvme"); i >= 0 {
		name, said, ok := strings.Cut(line[i+len("nvme "):], ": ")
		if ok && isName(name) {
			if kind := ofNVMe(said); kind != 0 {
				return Event{Kind: kind, Disk: name, Raw: checks.OneLine(line)}, true
			}
		}
		return Event{}, false
	}
	for _, words := range [...]string{"Remounting filesystem read-only", "forced readonly", "hutting down filesystem", "ilesystem has been shut down due to"} {
		i := strings.Index(line, words)
		if i < 0 {
			continue
		}
		disk := device(line[:i])
		if disk == "" || strings.Contains(line[:i], "User initiated shutdown") {
			return Event{}, false
		}
		return Event{Kind: ReadOnly, Disk: disk, Raw: checks.OneLine(line)}, true
	}
	return Event{}, false
}

// ofNVMe reads "I/O tag 256 (1100) opcode 0x2 (I/O Cmd) QID 1 timeout, aborting req_op:READ(0) size:131072" and its older
// wordings, and what becomes of the controller.
func ofNVMe(said string) Kind {
	switch {
	case strings.HasPrefix(said, "I/O ") && strings.Contains(said, " timeout, "):
		return DiskTimeout
	case strings.HasPrefix(said, "controller is down; will reset"):
		return DiskDown
	case strings.HasPrefix(said, "Disabling device after reset failure"), strings.HasPrefix(said, "Removing after probe failure"),
		strings.HasPrefix(said, "Device not ready; aborting"):
		return DiskLost
	}
	return 0
}

// device reads the device's name before what a file system says of it: "EXT4-fs (dm-0): ", "EXT4-fs error (device sda1): ",
// "BTRFS info (device sda1 state E): ".
func device(before string) string {
	for _, fs := range [...]string{"EXT4-fs", "EXT3-fs", "EXT2-fs", "XFS", "BTRFS"} {
		i := strings.LastIndex(before, fs)
		if i < 0 {
			continue
		}
		_, in, _ := strings.Cut(before[i:], "(")
		in, _, ok := strings.Cut(in, ")")
		in = strings.TrimPrefix(in, "device ")
		in, _, _ = strings.Cut(in, " ")
		if ok && isName(in) {
			return in
		}
	}
	return ""
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && strings.IndexByte("-_!.", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 32
}

func judgeDisk(f checks.Finding, e Event) checks.Finding {
	switch e.Kind {
	case DiskTimeout:
		f.Reason = e.Disk + " did not answer in time"
	case DiskDown:
		f.Reason = e.Disk + ": the controller stopped and is reset"
	case DiskLost:
		f.Verdict, f.Action, f.Reason = checks.Fail, checks.Drain, e.Disk+": the disk could not be brought back"
	case ReadOnly:
		f.Reason = "the file system on " + e.Disk + " has been stopped after an error"
		if !strings.HasPrefix(e.Disk, "loop") { // an image in a file, such as a job's container
			f.Verdict, f.Action = checks.Fail, checks.Drain
		}
	}
	return f
}
