// Package host reads the node itself: network ports, file systems, memory, processors, processes, disks and clocks, from
// sysfs, procfs and two system calls.
//
// Everything is read as text under a name, from a Source: the machine, a simulated one, or the texts of an earlier reading.
// The same texts give the same readings. No read may hold up the agent: each group of files has a deadline, and one that
// does not come back keeps its one thread and is not asked again until it does.
package host

// A Source gives texts by name. The names are those of files below /sys and /proc without the leading slash
// (sys/class/net/eth0/speed), "statfs" and a mount point (statfs/scratch), and "adjtimex". An error that is
// fs.ErrNotExist says that there is no such thing.
type Source interface {
	Text(name string) (string, error)
	List(dir string) ([]string, error) // the entries of a directory, sorted
	Link(name string) (string, error)  // where a symbolic link points to
}
