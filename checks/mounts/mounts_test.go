package mounts

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func limits() policy.Mounts {
	return policy.Mounts{Hang: policy.Duration(time.Minute), MaxUsed: 0.98, WatchUsed: 0.85}
}

// local and network are file systems a tenth full.
func local(change ...func(*Mount)) Mount {
	m := Mount{Point: "/scratch", Device: "/dev/nvme1n1", Type: "xfs", Size: 1000, Available: 900, Files: 1000, FilesFree: 900}
	for _, c := range change {
		c(&m)
	}
	return m
}

func network(change ...func(*Mount)) Mount {
	return local(append([]func(*Mount){func(m *Mount) { m.Point, m.Device, m.Type, m.Network = "/home", "filer:/home", "nfs4", true }}, change...)...)
}

func full(used uint64) func(*Mount) { return func(m *Mount) { m.Available = 1000 - used } }
func hung(d time.Duration) func(*Mount) {
	return func(m *Mount) { m.HungFor, m.Size, m.Available = d, 0, 0 }
}
func readOnly(was bool) func(*Mount) { return func(m *Mount) { m.ReadOnly, m.WasWritable = true, was } }
func of(ms ...Mount) Reading         { return Reading{Have: checks.Read, Mounts: ms} }
func expect(m policy.Mount) policy.Mounts {
	p := limits()
	p.Expect = map[string]policy.Mount{"/scratch/": m}
	return p
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name    string
		reading Reading
		policy  policy.Mounts
		want    string // verdict action
		reason  string
	}{
		{"healthy", of(local(), network()), limits(), "pass none", "2 file systems, the fullest at 10 %"},
		{"none at all", of(), limits(), "pass none", "0 file systems"},
		{"never read", Reading{}, limits(), "unknown none", "mounts not read"},
		{"could not be read", Reading{Err: "permission denied"}, limits(), "unknown none", "mounts not read: permission denied"},

		{"a local one as full as it may be", of(local(full(980))), limits(), "pass watch", "/scratch has 98.0 % of its bytes used"},
		{"a local one that is fuller", of(local(full(981))), limits(), "fail fix_config", "/scratch has 98.1 % of its bytes used"},
		{"a local one out of inodes", of(local(func(m *Mount) { m.FilesFree = 0 })), limits(), "fail fix_config", "100.0 % of its inodes used"},
		{"one that makes inodes as it goes", of(local(func(m *Mount) { m.Files, m.FilesFree = 0, 0 })), limits(), "pass none", "1 file systems"},
		{"a full one on the network is everybody's", of(network(full(1000))), limits(), "pass watch", "/home has 100.0 %"},
		{"as full as is not worth a look", of(network(full(850))), limits(), "pass none", ""},
		{"fuller than that", of(network(full(851))), limits(), "pass watch", "85.1 %"},
		{"a full one that nobody writes to", of(local(full(1000), readOnly(false))), limits(), "pass none", ""},

		{"turned read-only", of(local(readOnly(true))), limits(), "fail drain", "/scratch (/dev/nvme1n1) has turned read-only"},
		{"always was read-only", of(local(readOnly(false))), limits(), "pass none", ""},

		{"has not answered just now", of(local(), network(hung(5*time.Second))), limits(), "unknown none", "/home (nfs4 on filer:/home) has not answered for 5s; a fault after 1m"},
		{"has not answered for almost long enough", of(network(hung(time.Minute - time.Second))), limits(), "unknown none", "59s"},
		{"has not answered for long enough", of(network(hung(time.Minute))), limits(), "fail drain", "/home (nfs4 on filer:/home) has not answered for 1m0s"},
		{"answers with an error", of(network(func(m *Mount) { m.Err = "stale file handle" })), limits(), "fail drain", "/home (nfs4 on filer:/home) answers with an error: stale file handle"},
		{"a fault outranks what is open", of(local(readOnly(true)), network(hung(time.Second))), limits(), "fail drain", "has turned read-only; /home (nfs4"},

		{"expected and there", of(local()), expect(policy.Mount{Type: "xfs", MinBytes: 1000, Writable: true}), "pass none", ""},
		{"expected and not there", of(network()), expect(policy.Mount{}), "fail fix_config", "/scratch is not mounted"},
		{"of another type", of(local()), expect(policy.Mount{Type: "ext4"}), "fail fix_config", "/scratch is xfs, policy wants ext4"},
		{"too small", of(local()), expect(policy.Mount{MinBytes: 1001}), "fail fix_config", "/scratch has 0.0 MB, policy wants 0.0 MB"},
		{"not to be written", of(local(readOnly(false))), expect(policy.Mount{Writable: true}), "fail drain", "/scratch is read-only"},
		{"how large it is cannot be told while it hangs", of(local(hung(time.Second))), expect(policy.Mount{MinBytes: 1001}), "unknown none", "has not answered"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Judge(tt.reading, tt.policy)
			if got := f.Verdict.String() + " " + f.Action.String(); got != tt.want || !strings.Contains(f.Reason, tt.reason) || f.Hard || f.Check != ID {
				t.Errorf("got %s, hard %t, %q; want %s, %q", got, f.Hard, f.Reason, tt.want, tt.reason)
			}
		})
	}
}

func TestTrack(t *testing.T) {
	writable := map[string]bool{}
	Track(writable, of(local(), network(), local(func(m *Mount) { m.Point, m.ReadOnly = "/opt", true })))
	if len(writable) != 1 || !writable["/scratch"] {
		t.Errorf("learned %v", writable)
	}
	r := of(local(func(m *Mount) { m.ReadOnly = true }))
	if got := Track(writable, r); !got.Mounts[0].WasWritable || r.Mounts[0].WasWritable {
		t.Error("what was learned is not filled in, or in the reading itself")
	}
}

func TestFixtures(t *testing.T) {
	judge := func(r Reading) []checks.Finding { return []checks.Finding{Judge(r, limits())} }
	checktest.Three(t, ID, judge(of(local())), judge(of(local(readOnly(true)))), judge(Reading{Err: "EIO"}))
}
