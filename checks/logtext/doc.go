// Package logtext reads the kernel log in the forms in which tools print it: dmesg with and without its options, journalctl
// as short, verbose, json and export, syslog's files, raw kmsg, Talos, and bare messages.
//
// A line's time and boot are what the text says of them, never when it was read. What another program than the kernel
// wrote is left out where the text tells: anybody may log a line that looks like the driver's. The fabric manager counts
// as the kernel here; it reports switch errors in lines of its own.
//
// What dmesg and syslog print does not keep messages apart: where a user put the end of a line into the name of a file
// that the kernel then named, what follows stands there as a line of its own. Raw kmsg and the journal's own forms do, and a
// Line says so.
//
// Sources: util-linux sys-utils/dmesg.c, systemd src/shared/logs-show.c and "Journal Export Formats", RFC 3164, Linux
// Documentation/ABI/testing/dev-kmsg.
package logtext

import "time"

// A Line is one message of the log.
type Line struct {
	Text  []byte    // the message without what stands before it; valid until the next line is read
	At    time.Time // when it was logged; zero when the text does not say
	Whole bool      // it is one message of the kernel's from its beginning to its end: of a form that keeps messages apart
	Boot  string    // the boot id, or a name like boot-2 for the second boot that a text without ids shows; may be empty
}

// Relative reports whether a line's time counts from the start of its boot, since the text does not say when that was: it
// is in the year 1.
func Relative(at time.Time) bool { return at.Year() == 1 }

// Options say what a text alone does not.
type Options struct {
	Now   time.Time              // no line is later than this, by more than a day: for times without a year
	Local *time.Location         // for times without a zone; nil stands for UTC
	Want  func(line []byte) bool // whether a line may matter; what it refuses is counted and not read further. nil: all may
}

// bounds on what is kept of one line and one field, in bytes.
const (
	maxLine  = 64 << 10
	maxField = 16 << 10
)
