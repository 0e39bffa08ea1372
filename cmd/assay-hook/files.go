package main

import (
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/assay-gpu/assay/cmd/assay-hook/slurmconf"
)

// files is this node's file system, as self-test sees it.
type files struct{}

// Stat tells what slurmd will find at path.
func (files) Stat(path string) (f slurmconf.File, ok bool) {
	var st syscall.Stat_t
	if syscall.Stat(path, &st) != nil {
		return f, false
	}
	f.Regular = st.Mode&syscall.S_IFMT == syscall.S_IFREG
	f.Executable = st.Mode&0o111 != 0
	f.Loose = st.Uid != 0 || st.Mode&0o022 != 0
	f.Ours = f.Regular && ours(path, st)
	return f, true
}

// ours reports whether the file is this program or a script that calls it.
func ours(path string, st syscall.Stat_t) bool {
	var self syscall.Stat_t
	if syscall.Stat("/proc/self/exe", &self) == nil && self.Dev == st.Dev && self.Ino == st.Ino {
		return true
	}
	data, _, err := readFile(path, 64<<10)
	if err != nil {
		return false
	}
	if text := string(data); strings.HasPrefix(text, "#!") {
		return strings.Contains(text, "assay-hook") || strings.Contains(text, "libexec/assay/")
	}
	// A copy of it, or another build: it carries its own usage text. Read on, it is a megabyte or two.
	data, _, err = readFile(path, 8<<20)
	return err == nil && strings.Contains(string(data), "usage: assay-hook prolog|epilog|healthcheck")
}

// Glob is glob(3): wildcards in any part of the path, none of which matches a leading dot.
func (files) Glob(pattern string) []string {
	found := []string{"/"}
	parts := strings.Split(strings.Trim(pattern, "/"), "/")
	for _, part := range parts {
		var next []string
		for _, dir := range found {
			if !strings.ContainsAny(part, `*?[\`) {
				var st syscall.Stat_t
				if full := path.Join(dir, part); syscall.Stat(full, &st) == nil {
					next = append(next, full)
				}
				continue
			}
			for _, name := range list(dir) {
				if match, err := path.Match(part, name); err == nil && match && (name[0] != '.' || part[0] == '.') {
					next = append(next, path.Join(dir, name))
				}
			}
		}
		found = next
	}
	slices.Sort(found)
	return found
}

// list returns the names in a directory, nil if it cannot be read.
func list(dir string) []string {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := syscall.ReadDirent(fd, buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return names
		}
		_, _, names = syscall.ParseDirent(buf[:n], -1, names)
	}
}

// slurmVersion asks slurmd, or scontrol, for Slurm's version, as "22.05.8"; "" if neither says it within 5 s.
func slurmVersion() string {
	for _, program := range [...]string{"slurmd", "scontrol"} {
		for _, dir := range append([]string{"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/slurm/sbin", "/opt/slurm/bin"}, strings.Split(getenv("PATH"), ":")...) {
			full := path.Join("/", dir, program)
			var st syscall.Stat_t
			if syscall.Stat(full, &st) != nil || st.Mode&0o111 == 0 {
				continue
			}
			// "slurm-wlm 22.05.8" or "slurm 23.11.4"
			for word := range strings.FieldsSeq(output(full, "-V")) {
				if a, rest, ok := strings.Cut(word, "."); ok && len(a) == 2 && a >= "00" && a <= "99" && rest != "" {
					return word
				}
			}
			return ""
		}
	}
	return ""
}

// output runs a program for 5 s at most and returns the first 4 KiB of what it prints. Only self-test runs anything.
func output(args ...string) string {
	var p [2]int
	if syscall.Pipe2(p[:], syscall.O_CLOEXEC) != nil {
		return ""
	}
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		syscall.Close(p[0])
		syscall.Close(p[1])
		return ""
	}
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: environment(), Files: []uintptr{uintptr(null), uintptr(p[1]), uintptr(null)}})
	syscall.Close(null)
	syscall.Close(p[1])
	defer syscall.Close(p[0])
	if err != nil {
		return ""
	}
	var text []byte
	buf := make([]byte, 4<<10)
	for deadline := now() + 5*second; len(text) < len(buf) && ready(p[0], deadline); {
		n, err := syscall.Read(p[0], buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		text = append(text, buf[:n]...)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
			return string(text)
		}
	}
}
