// Package history keeps what the checks remember of a node between readings, and over restarts of the agent: in the state
// directory, history.json for one boot (strikes, windows, flaps) and learned.json for all of them (ports that have been up,
// the most memory there was).
//
// The files make the agent surer, never less careful: one that cannot be read is logged and taken as absent. A person takes
// something back by name; that is left in forget/ and taken up with the next reading.
package history

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/port"
	"github.com/assay-gpu/assay/checks/strike"
)

const (
	bookFile    = "history.json"
	learnedFile = "learned.json"
	forgetDir   = "forget"
)

// saveEvery is how much of the windows a crash may lose. Counters go on counting meanwhile.
const saveEvery = 5 * time.Minute

// A Keeper is one node's memory. Its methods may be called from any goroutine.
type Keeper struct {
	dir      string
	readOnly bool
	log      *slog.Logger

	mu      sync.Mutex
	book    *strike.Book
	learned catalog.Learned
	onDisk  catalog.Learned // learned as last written
	savedAt time.Duration   // boot clock
	saved   bool
}

// Open reads what an earlier run left in the state directory. A read-only Keeper writes nothing there: that of a check by
// hand, beside the daemon's.
func Open(stateDir string, readOnly bool, log *slog.Logger) *Keeper {
	k := &Keeper{dir: stateDir, readOnly: readOnly, log: log}
	var b strike.Book
	if k.load(bookFile, &b) {
		k.book = &b
	}
	if !k.load(learnedFile, &k.learned) {
		k.learned = catalog.Learned{}
	}
	k.onDisk = k.learned.Clone()
	return k
}

func (k *Keeper) load(name string, v any) bool {
	found, err := atomicfile.ReadJSON(filepath.Join(k.dir, name), v)
	if err != nil {
		k.log.Warn("what was remembered is unreadable and is taken as absent", "file", name, "err", err)
		reflect.ValueOf(v).Elem().SetZero()
	}
	return found && err == nil
}

// Track fills in what is remembered of what the snapshot shows, and remembers it. at is the boot clock at which it was read.
func (k *Keeper) Track(s catalog.Snapshot, at time.Duration, p policy.Policy) catalog.Snapshot {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.book = k.book.Of(s.BootID)
	forgotten := k.forget()
	s = catalog.Track(k.book, &k.learned, at, s, p)
	if k.readOnly {
		return s
	}
	if len(forgotten) > 0 || !k.saved || at-k.savedAt >= saveEvery {
		if k.saveBook() {
			k.saved, k.savedAt = true, at
		}
	}
	if k.saveLearned() {
		for _, f := range forgotten {
			_ = os.Remove(f) // what stays is forgotten again, which changes nothing
		}
	}
	return s
}

// Save writes all, before an orderly end.
func (k *Keeper) Save() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.readOnly && k.book != nil {
		k.saveBook()
		k.saveLearned()
	}
}

func (k *Keeper) saveBook() bool { return k.save(bookFile, k.book) }

func (k *Keeper) saveLearned() bool {
	if reflect.DeepEqual(k.learned, k.onDisk) {
		return true
	}
	if !k.save(learnedFile, k.learned) {
		return false
	}
	k.onDisk = k.learned.Clone()
	return true
}

func (k *Keeper) save(name string, v any) bool {
	data, err := json.Marshal(v)
	if err == nil {
		err = atomicfile.Write(filepath.Join(k.dir, name), data, 0o600)
	}
	if err != nil {
		k.log.Error("what is remembered is not on disk", "file", name, "err", err)
	}
	return err == nil
}

// forget takes up what people want forgotten, and returns the files that said so.
func (k *Keeper) forget() []string {
	entries, err := os.ReadDir(filepath.Join(k.dir, forgetDir))
	if err != nil {
		return nil // nobody ever asked
	}
	var files []string
	for _, e := range entries {
		name, err := url.PathUnescape(e.Name())
		if err != nil {
			continue
		}
		forgetIn(&k.learned, name)
		for subject := range k.book.Subjects {
			if namesPart(subject, name) {
				k.book.Clear(subject)
			}
		}
		files = append(files, filepath.Join(k.dir, forgetDir, e.Name()))
		k.log.Info("forgotten, as asked", "part", name)
	}
	return files
}

// namesPart reports whether a subject of the book is about the part of that name.
func namesPart(subject, name string) bool {
	return subject == name || strings.HasSuffix(subject, "/port"+name) || strings.HasSuffix(subject, " "+name)
}

func forgetIn(l *catalog.Learned, name string) {
	for key := range l.Ports {
		if namesPart(key, name) {
			delete(l.Ports, key)
		}
	}
	delete(l.Writable, name)
	switch name {
	case "memory":
		l.Memory = 0
	case "cpus":
		l.CPUs = 0
	case "disks":
		l.Disks = nil
	}
	l.Disks = slices.DeleteFunc(l.Disks, func(d string) bool { return d == name })
}

// Parts names what is remembered or learned, as Forget takes it.
func Parts(stateDir string) []string {
	k := Open(stateDir, true, slog.New(slog.DiscardHandler))
	var out []string
	if k.book != nil {
		for s := range k.book.Subjects {
			if _, name, ok := strings.Cut(s, "/port"); ok {
				out = append(out, name)
			}
		}
	}
	for key, l := range k.learned.Ports {
		for _, id := range []string{port.Infiniband, port.Ethernet} {
			if name, ok := strings.CutPrefix(key, id+" "+port.Port{PCI: l.PCI}.Subject().Key()+"/port"); ok {
				out = append(out, name)
			}
		}
	}
	for point := range k.learned.Writable {
		out = append(out, point)
	}
	if k.learned.Memory > 0 {
		out = append(out, "memory")
	}
	if k.learned.CPUs > 0 {
		out = append(out, "cpus")
	}
	if len(k.learned.Disks) > 0 {
		out = append(append(out, "disks"), k.learned.Disks...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// An UnknownPartError says that nothing is remembered of a part.
type UnknownPartError struct {
	Name  string
	Known []string
}

func (e *UnknownPartError) Error() string {
	return fmt.Sprintf("%q: nothing is remembered of it", e.Name)
}

// Hint says of what something is.
func (e *UnknownPartError) Hint() string {
	if len(e.Known) == 0 {
		return "nothing is remembered at all in this state directory"
	}
	return "there are " + strings.Join(e.Known, ", ")
}

// Forget has the daemon of that state directory forget a part, with its next reading.
func Forget(stateDir, name string) error {
	if known := Parts(stateDir); !slices.Contains(known, name) {
		return &UnknownPartError{name, known}
	}
	dir := filepath.Join(stateDir, forgetDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, url.PathEscape(name)), nil, 0o600)
}
