package policy

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A UserCheck is an executable of the site's own that judges the node. Its findings bear the check id user/NAME, and its
// mode, action and share stand under checks, as those of any check. What is not set here is as the methods say.
type UserCheck struct {
	Command []string          `json:"command" yaml:"command"`         // an absolute path and its arguments; no shell reads it
	Format  string            `json:"format" yaml:"format,omitempty"` // how it says what it finds: "nagios" (the default), "json" or "exit"
	Every   Duration          `json:"every" yaml:"every,omitempty"`   // between two runs; default 5m
	Timeout Duration          `json:"timeout" yaml:"timeout,omitempty"`
	Output  int               `json:"output" yaml:"output,omitempty"` // most bytes it may print; default 65536
	Memory  int64             `json:"memory" yaml:"memory,omitempty"` // most bytes of address space; default 1 GiB
	User    string            `json:"user" yaml:"user,omitempty"`     // to run as; empty: as the agent
	Env     map[string]string `json:"env" yaml:"env,omitempty"`       // added to the few variables that it gets
	Screen  bool              `json:"screen" yaml:"screen,omitempty"` // screens run it too
}

// Formats of a user check.
const (
	FormatNagios = "nagios" // exit status 0 to 3: OK, WARNING, CRITICAL, UNKNOWN; the first line says why
	FormatJSON   = "json"   // findings, one a line
	FormatExit   = "exit"   // exit status 0 is well, any other a fault
)

// FormatOr is the format, with its default.
func (u UserCheck) FormatOr() string {
	if u.Format == "" {
		return FormatNagios
	}
	return u.Format
}

// EveryOr is the time between runs, with its default.
func (u UserCheck) EveryOr() time.Duration {
	if u.Every == 0 {
		return 5 * time.Minute
	}
	return u.Every.D()
}

// TimeoutOr is the time a run may take, with its default of 30 s.
func (u UserCheck) TimeoutOr() time.Duration {
	if u.Timeout == 0 {
		return 30 * time.Second
	}
	return u.Timeout.D()
}

// OutputOr is the most bytes that it may print, with its default.
func (u UserCheck) OutputOr() int {
	if u.Output == 0 {
		return 64 << 10
	}
	return u.Output
}

// MemoryOr is the most address space that it may use, in bytes, with its default.
func (u UserCheck) MemoryOr() int64 {
	if u.Memory == 0 {
		return 1 << 30
	}
	return u.Memory
}

// UserIDs gives the catalog ids of the user checks that p or an override of it names, sorted.
func (p Policy) UserIDs() []string {
	ids := map[string]bool{}
	for name := range p.UserChecks {
		ids["user/"+name] = true
	}
	for _, o := range p.Overrides {
		set, _ := o.Set.Tree()["user_checks"].(map[string]any)
		for name := range set {
			ids["user/"+name] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

var (
	userName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)
	unixName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,31}$`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// maxUserChecks bounds how many there may be: each is a process of its own.
const maxUserChecks = 64

func (v *validator) userChecks(us map[string]UserCheck) {
	if len(us) > maxUserChecks {
		v.add("user_checks", "%d of them: want %d at most", len(us), maxUserChecks)
	}
	for name, u := range us {
		at := "user_checks." + name
		if !userName.MatchString(name) {
			v.add(at, "want a name of up to 40 small letters, digits, - and _, a letter first")
		}
		v.userCheck(at, u)
	}
}

func (v *validator) userCheck(at string, u UserCheck) {
	switch {
	case len(u.Command) == 0:
		v.add(at+".command", "want an executable and its arguments, as [/usr/local/sbin/check-scratch, --quick]")
	case !path.IsAbs(u.Command[0]) || path.Clean(u.Command[0]) != u.Command[0]:
		v.add(at+".command[0]", "%q: want an absolute path, without . and ..", u.Command[0])
	}
	for i, arg := range u.Command {
		if strings.ContainsRune(arg, 0) {
			v.add(fmt.Sprintf("%s.command[%d]", at, i), "holds a zero byte")
		}
	}
	oneOf(v, at+".format", u.Format, "", FormatNagios, FormatJSON, FormatExit)
	v.within(at+".every", Duration(u.EveryOr()), time.Second, day)
	v.within(at+".timeout", Duration(u.TimeoutOr()), 100*time.Millisecond, time.Hour)
	if o := u.OutputOr(); o < 1 || o > 1<<20 {
		v.add(at+".output", "%d: want 1 to 1048576 bytes", o)
	}
	atLeast(v, at+".memory", u.MemoryOr(), 1<<20)
	if u.User != "" && !unixName.MatchString(u.User) {
		v.add(at+".user", "%q: want a user's name", u.User)
	}
	for k, value := range u.Env {
		if !envName.MatchString(k) || strings.ContainsRune(value, 0) {
			v.add(at+".env."+k, "want a variable's name, and a value without zero bytes")
		}
	}
}
