package coordinator

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A backup is gzip of JSON lines: a head, the keys, and an end with the SHA-256 of the lines before it.
type backupHead struct {
	Format   string    `json:"format"` // "assay backup 1"
	At       time.Time `json:"at"`
	Revision int64     `json:"revision"` // of etcd
	Term     int64     `json:"term"`
}

type backupKey struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

type backupEnd struct {
	Keys   int    `json:"keys"`
	SHA256 string `json:"sha256"`
}

const backupFormat = "assay backup 1"

// Backup writes everything that is stored, as it stood at one revision. It holds the fleet's private keys.
func Backup(ctx context.Context, s *store.Store, w io.Writer, at time.Time) (keys int, err error) {
	entries, rev, err := s.List(ctx, "")
	if err != nil {
		return 0, err
	}
	term, err := s.LastTerm(ctx)
	if err != nil {
		return 0, err
	}
	z := gzip.NewWriter(w)
	sum := sha256.New()
	e := json.NewEncoder(io.MultiWriter(z, sum))
	if err := e.Encode(backupHead{backupFormat, at.UTC(), rev, term}); err != nil {
		return 0, err
	}
	for _, x := range entries {
		if store.Own(x.Key) {
			continue
		}
		keys++
		if err := e.Encode(backupKey{x.Key, x.Value}); err != nil {
			return 0, err
		}
	}
	if err := json.NewEncoder(z).Encode(backupEnd{keys, hex.EncodeToString(sum.Sum(nil))}); err != nil {
		return 0, err
	}
	return keys, z.Close()
}

// A BackupError says why a file is no whole backup.
type BackupError struct{ Why string }

func (e *BackupError) Error() string { return "backup: " + e.Why }

// Hint says what to do.
func (e *BackupError) Hint() string {
	return "use another backup; assayd restore --check FILE reads one and changes nothing"
}

// maxBackupLine bounds one line: etcd holds no value above 1.5 MiB, and base64 makes four bytes of three.
const maxBackupLine = 4 << 20

// readBackup reads a whole backup and believes nothing before its end has been checked.
func readBackup(r io.Reader) (backupHead, []backupKey, error) {
	var head backupHead
	z, err := gzip.NewReader(r)
	if err != nil {
		return head, nil, &BackupError{"it is no gzip file: " + err.Error()}
	}
	sc := bufio.NewScanner(z)
	sc.Buffer(make([]byte, 0, 64<<10), maxBackupLine)
	sum := sha256.New()
	if !sc.Scan() || json.Unmarshal(sc.Bytes(), &head) != nil || head.Format != backupFormat {
		return head, nil, &BackupError{"it does not begin as one of this version does"}
	}
	addLine(sum, sc.Bytes())
	var keys []backupKey
	for sc.Scan() {
		line := sc.Bytes()
		if bytes.HasPrefix(line, []byte(`{"keys":`)) {
			var end backupEnd
			if err := json.Unmarshal(line, &end); err != nil || end.Keys != len(keys) || end.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
				return head, nil, &BackupError{"its end does not fit what is before it: it was changed or damaged"}
			}
			if sc.Scan() {
				return head, nil, &BackupError{"it goes on after its end"}
			}
			return head, keys, sc.Err()
		}
		var k backupKey
		if err := json.Unmarshal(line, &k); err != nil || k.Key == "" || store.Own(k.Key) {
			return head, nil, &BackupError{fmt.Sprintf("line %d is no key", len(keys)+2)}
		}
		addLine(sum, line)
		keys = append(keys, k)
	}
	return head, nil, &BackupError{"it breaks off"}
}

func addLine(sum hash.Hash, line []byte) {
	sum.Write(line)
	sum.Write([]byte{'\n'})
}

// What a restore adds to every number that only rises: more than can have been given out since the backup was made.
const (
	termGap     = 1_000
	revisionGap = 1_000_000_000
	serialGap   = 10_000_000
	policyGap   = 1_000
)

// A Restored says what a restore has made.
type Restored struct {
	At       time.Time `json:"backup_at"` // when the backup was made
	Keys     int       `json:"keys"`
	Nodes    int       `json:"nodes"`
	Voided   int       `json:"certificates_voided"`
	Effects  int       `json:"effects_voided"`
	Restores int       `json:"restores"` // of this fleet's store, this one included
}

// Restore fills an empty store from a backup. What the backup cannot know is not believed: certificates are void, for one may
// have been revoked since; pending effects are void, for they may have been carried out; enrolment tokens are void, for they
// may have been spent. Numbers that only rise are raised, so that agents and carriers take nothing new for old. Policy
// observes, until Lift.
func Restore(ctx context.Context, s *store.Store, r io.Reader, now time.Time) (Restored, error) {
	head, keys, err := readBackup(r)
	if err != nil {
		return Restored{}, err
	}
	out, ops, err := restored(head, keys, now)
	if err != nil {
		return Restored{}, err
	}
	return out, s.Fill(ctx, ops, head.Term+termGap)
}

// CheckBackup reads a backup as Restore would, and changes nothing.
func CheckBackup(r io.Reader, now time.Time) (Restored, error) {
	head, keys, err := readBackup(r)
	if err != nil {
		return Restored{}, err
	}
	out, _, err := restored(head, keys, now)
	return out, err
}

// restored makes of a backup what is to be stored. It is pure.
func restored(head backupHead, keys []backupKey, now time.Time) (out Restored, ops []store.Op, err error) {
	out = Restored{At: head.At, Keys: len(keys)}
	var gen generation
	for _, k := range keys {
		value := k.Value
		switch {
		case strings.HasPrefix(k.Key, keyCerts):
			out.Voided++
			continue
		case strings.HasPrefix(k.Key, keyEffects):
			out.Effects++
			continue
		case strings.HasPrefix(k.Key, keyTokens), k.Key == keyRollout, k.Key == keyGeneration:
			if k.Key == keyGeneration {
				err = json.Unmarshal(value, &gen)
			}
			if err != nil {
				return out, nil, &BackupError{k.Key + ": " + err.Error()}
			}
			continue
		case strings.HasPrefix(k.Key, keyNodes):
			out.Nodes++
			value, err = edit(value, func(n *lifecycle.Node) { *n = voided(*n, now) })
		case k.Key == keyCounters:
			value, err = edit(value, func(c *counters) { c.raise(now) })
		case k.Key == keyPolicy:
			var before policy.Policy
			if before, err = policy.Read(value); err == nil {
				gen.Before, gen.Observe = value, true
				value = marshal(k.Key, observing(before))
			}
		}
		if err != nil {
			return out, nil, &BackupError{k.Key + ": " + err.Error()}
		}
		ops = append(ops, store.Op{Key: k.Key, Value: value})
	}
	if gen.Schema > schema {
		return out, nil, &NewerDataError{gen.Schema, schema}
	}
	gen.Restored++
	gen.At, gen.LiftedBy = now.UTC(), ""
	gen.Base += uint64(head.Revision) + revisionGap
	out.Restores = gen.Restored
	return out, append(ops, store.Op{Key: keyGeneration, Value: marshal(keyGeneration, gen)}), nil
}

func edit[T any](value []byte, do func(*T)) ([]byte, error) {
	var v T
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, err
	}
	do(&v)
	return json.Marshal(v)
}

// raise puts every counter beyond what may have been given out since the backup.
func (c *counters) raise(now time.Time) {
	c.Serial += serialGap
	c.Effect += serialGap
	c.History += serialGap
	c.Job += 100_000
	c.Policy += policyGap + 1
	if now.After(c.Time) {
		c.Time = now.UTC().Truncate(time.Millisecond)
	}
}

// observing is a policy that only looks on, with a version above any that agents may hold.
func observing(p policy.Policy) policy.Policy {
	p.Version += policyGap
	p.Mode = policy.Observe
	p.Checks = nil
	return p
}

// voided is a node of which only its hardware, its holds and its case are believed.
func voided(n lifecycle.Node, now time.Time) lifecycle.Node {
	n.Certificate, n.Suspended, n.Screen = nil, false, ""
	n.LastSerial += serialGap
	n.Version++
	if n.DrainPending || n.DrainedByUs && n.ResumePending {
		n.RedrainAfter = now
	}
	n.DrainPending, n.ResumePending, n.Rewriting, n.Demand = false, false, "", checks.NoLevel
	switch n.State {
	case lifecycle.Certified:
		n.State, n.Since, n.Want, n.Tries = lifecycle.Screening, now, checks.Quick, 0
		n.Deadline = now.Add(time.Minute) // asked for then, if nothing else has
		if n.Case != nil && !n.Case.Out {
			n.Want = max(n.Want, n.Case.Level)
		}
	case lifecycle.Screening, lifecycle.Enrolled:
		n.Deadline = now.Add(time.Minute)
	}
	return n
}

// Lift ends what a restore began: the policy that held before it holds again.
func (c *Coordinator) Lift(ctx context.Context, by, reason string, unheard bool) error {
	l, err := c.leading()
	if err != nil {
		return err
	}
	if err := l.do(ctx, func(t *tx) error { return l.lift(t, by, reason, unheard) }); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gen.Observe, l.gen.Before, l.gen.LiftedBy = false, nil, by
	return nil
}

func (l *lead) lift(t *tx, by, reason string, unheard bool) error {
	l.mu.RLock()
	gen := l.gen
	l.mu.RUnlock()
	if !gen.Observe {
		return &refusedError{"nothing to lift: no restore holds the policy at observe", ""}
	}
	var silent []string
	for _, name := range sortedKeys(t.base.nodes) {
		if n := t.base.nodes[name]; n.State != lifecycle.Retired && n.State != lifecycle.RMA {
			if _, heard := l.beats.of(name); !heard {
				silent = append(silent, name)
			}
		}
	}
	if len(silent) > 0 && !unheard {
		return &refusedError{fmt.Sprintf("not every node has reported since the restore: %d have not, as %s", len(silent), strings.Join(silent[:min(len(silent), 10)], ", ")),
			"start their agents; or --accept-risk=unheard, and they act as the backup knew them"}
	}
	before, err := policy.Read(gen.Before)
	if err != nil {
		return errors.Join(errors.New("the policy before the restore"), err)
	}
	before.Version = t.nextPolicy()
	t.policy, t.rollout, t.governed = before, nil, true
	gen.Observe, gen.Before, gen.LiftedBy = false, nil, by
	t.put(keyGeneration, gen)
	t.record(wire.HistoryEntry{Event: fmt.Sprintf("restore_lifted policy=%d mode=%s reason=%s", before.Version, before.Mode, quote(reason)), By: by})
	return nil
}
