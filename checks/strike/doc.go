// Package strike is what checks remember between readings: how far a counter rose within a sliding window, how long a
// state has lasted, how often a link went down and came back, and what has recovered too often to be trusted again before
// the next boot.
//
// It holds values and reads no clock: a caller gives the boot-clock time of each reading, and may keep a Book as JSON
// over its own restarts. A Book is of one boot; counters, links and processes start anew with the next.
//
// Only a reading of the same subject changes what is known of it: one that is not read keeps its faults, and a subject
// that is well says nothing for its neighbour.
//
// The rules are those that served others well: deltas that need a full window before they fire and strikes that hold until
// reboot (Azure/cyclecloud-healthagent), drops and flaps with a least duration (leptonai/gpud).
package strike
