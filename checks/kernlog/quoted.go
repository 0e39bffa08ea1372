package kernlog

import "strings"

// A kernel line may hold what a user chose: the name of a process, up to 15 bytes, and in a few lines the name of a file, of a
// control group or of a mount option, of any length. What the checks take for a fault is longer than a process's name. The lines
// here have room for a whole sentence of the driver's, so that a job could have its node drained; they say nothing of ours.

// roomy are sentences with room, each too long to stand in a process's name.
var roomy = [...]string{
	"' started with executable stack", "page allocation failure: order:", "oom-kill:constraint=", "Memory cgroup stats for ",
	" killed as a result of limit of ", "fork rejected by pids controller in ",
}

// quotation is what stands before a user's words in others: "tmpfs: Unknown parameter '…'", which anybody may cause in a
// namespace of his own. Before a sentence of ours it means that the sentence is quoted.
var quotation = [...]string{" '", " `", ` option "`}

// crash is how the kernel tells that a process crashed: "python3[4242]: segfault at 0 ip 0000… sp 0000… error 4 in
// libfoo.so[7f…+1000]", with two names of the user's. The marks around are too long, together, to be made by a name elsewhere.
var crash = [...]string{"]: segfault at ", "] general protection ", "] trap ", "] bad frame in ", "]: unhandled "}

// quotes reports whether a line has a user's words where ours are. It is asked of lines that seem to tell of an
// event, and so rarely.
func quotes(line string) bool {
	for _, words := range roomy {
		if strings.Contains(line, words) {
			return true
		}
	}
	for _, mark := range crash {
		if i := strings.Index(line, mark); i >= 0 && crashed(line[:i], line[i+len(mark):]) {
			return true
		}
	}
	ours := len(line)
	for _, w := range words {
		if i := strings.Index(line[:ours], w.text); i >= 0 {
			ours = i
		}
	}
	for _, mark := range quotation {
		if strings.Contains(line[:ours], mark) {
			return true
		}
	}
	return false
}

// crashed reports whether around a crash's mark stands what makes it one: before it the process's number, after it the
// registers or the syndrome.
func crashed(before, after string) bool {
	open := strings.TrimRight(before, "0123456789")
	if len(open) == len(before) || !strings.HasSuffix(open, "[") {
		return false
	}
	has := func(s string) bool { return strings.Contains(after, s) }
	return has(" ip:") && has(" sp:") || has(" ip ") && has(" sp ") || has(", esr ") || has(", ESR ")
}
