package host

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/mounts"
	"github.com/assay-gpu/assay/checks/nvme"
	"github.com/assay-gpu/assay/checks/policy"
)

// networkTypes are file systems whose server may go away, and that all nodes share.
var networkTypes = []string{"nfs", "nfs4", "lustre", "gpfs", "beegfs", "beegfs_nodev", "wekafs", "ceph", "cifs", "smb3", "glusterfs", "9p", "afs", "fuse.glusterfs", "fuse.juicefs", "fuse.s3fs", "fuse.sshfs"}

// immutableTypes are read-only and full by nature.
var immutableTypes = []string{"squashfs", "iso9660", "erofs", "udf"}

// mounts reads the list of mounts, and then asks each file system in a thread of its own.
func (p *Probe) mounts(ctx context.Context, keep func(Texts), pol policy.Mounts) mounts.Reading {
	out, texts, err := read(ctx, p, "mounts", func(r *recorder) mounts.Reading { return listMounts(r, pol) })
	keep(texts)
	if err != nil {
		return mounts.Reading{Err: err.Error()}
	}
	var wg sync.WaitGroup
	for i := range out.Mounts {
		m := &out.Mounts[i]
		wg.Go(func() { p.statfs(ctx, keep, m) })
	}
	wg.Wait()
	out.Mounts = slices.DeleteFunc(out.Mounts, func(m mounts.Mount) bool {
		_, named := pol.Expect[m.Point]
		return m.Err == notOurs && !named
	})
	return out
}

// notOurs marks a file system that cannot be asked from here: it is hidden, or belongs to a user alone.
const notOurs = "it cannot be asked from here"

func (p *Probe) statfs(ctx context.Context, keep func(Texts), m *mounts.Mount) {
	got, texts, err := read(ctx, p, "statfs "+m.Point, func(r *recorder) (x struct {
		text string
		err  error
	}) {
		x.text, x.err = r.Text("statfs" + m.Point)
		return x
	})
	keep(texts)
	var hung *hungError
	switch {
	case errors.As(err, &hung):
		m.HungFor = hung.since
	case errors.Is(got.err, fs.ErrPermission), errors.Is(got.err, fs.ErrNotExist):
		m.Err = notOurs
	case got.err != nil:
		m.Err = got.err.Error()
	default:
		v := fields(got.text)
		m.Size, m.Available, m.Files, m.FilesFree = v["blocks"]*v["bsize"], v["bavail"]*v["bsize"], v["files"], v["ffree"]
		if v["bsize"] == 0 {
			m.HungFor = 1 // no answer at all
		}
	}
}

// fields reads "name=number" words.
func fields(s string) map[string]uint64 {
	out := map[string]uint64{}
	for w := range strings.FieldsSeq(s) {
		if name, value, ok := strings.Cut(w, "="); ok {
			if n, err := strconv.ParseUint(value, 10, 64); err == nil {
				out[name] = n
			}
		}
	}
	return out
}

// listMounts reads the first process's mounts, or where that is not allowed our own. Of each device the first mount counts, the
// others being views of it, unless policy names them.
func listMounts(r *recorder, pol policy.Mounts) mounts.Reading {
	text, err := r.Text("proc/1/mounts")
	if err != nil {
		text, err = r.Text("proc/self/mounts")
	}
	if err != nil {
		return mounts.Reading{Err: "mounts: " + err.Error()}
	}
	out := mounts.Reading{Have: checks.Read}
	devices := map[string]bool{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		m := mounts.Mount{Device: unescape(f[0]), Point: path.Clean(unescape(f[1])), Type: f[2]}
		m.Network = slices.Contains(networkTypes, m.Type)
		m.ReadOnly = slices.Contains(strings.Split(f[3], ","), "ro")
		_, named := pol.Expect[m.Point]
		real := !strings.HasPrefix(m.Type, "fuse") && strings.HasPrefix(m.Device, "/dev/") || m.Network || m.Point == "/" || m.Type == "zfs" || m.Type == "btrfs"
		if !named && (!real || devices[m.Device] || slices.Contains(immutableTypes, m.Type)) {
			continue
		}
		devices[m.Device] = true
		// A mount over another hides it.
		out.Mounts = slices.DeleteFunc(out.Mounts, func(o mounts.Mount) bool { return o.Point == m.Point })
		out.Mounts = append(out.Mounts, m)
	}
	slices.SortFunc(out.Mounts, func(a, b mounts.Mount) int { return strings.Compare(a.Point, b.Point) })
	return out
}

// unescape reads the octal escapes of /proc/mounts: space, tab, newline, backslash and hash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#").Replace(s)
}

// nvmeOf reads every NVMe controller. Files: Linux drivers/nvme/host/sysfs.c, Documentation/hwmon/sysfs-interface.rst.
func nvmeOf(r *recorder, health *healthLogs) nvme.Reading {
	before := health.round()
	names, have, why := devices(r, "sys/class/nvme")
	out := nvme.Reading{Have: have, Err: why}
	for _, name := range names {
		at := "sys/class/nvme/" + name
		if t := r.word("%s/transport", at); t != "" && t != "pcie" {
			continue // a fabric's controller is the network's matter
		}
		d := nvme.Disk{Name: name, PCI: deviceOf(r, at), Model: r.word("%s/model", at), Serial: r.word("%s/serial", at)}
		d.State = r.told(&d.Err, "%s/state", at)
		entries, err := r.List(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.Err = err.Error()
		}
		for _, e := range entries {
			switch {
			case strings.HasPrefix(e, name+"n") || strings.HasPrefix(e, name+"c"):
				n, _ := strconv.ParseUint(r.word("%s/%s/size", at, e), 10, 64)
				d.Size += n * 512
				d.ReadOnly = d.ReadOnly || r.told(&d.Err, "%s/%s/ro", at, e) == "1"
			case strings.HasPrefix(e, "hwmon"):
				hwmon(r, at+"/"+e, &d)
			}
		}
		if d.Err == "" && (d.State == "live" || d.State == "") { // one that is reset keeps whoever asks it waiting
			d.Health = healthOf(health.text(r, before, name, d.Identity()))
		}
		out.Disks = append(out.Disks, d)
	}
	return out
}

// hwmon reads the composite temperature, in the folder itself or in the one device below it.
func hwmon(r *recorder, at string, d *nvme.Disk) {
	if path.Base(at) == "hwmon" {
		below, _ := r.List(at)
		for _, e := range below {
			hwmon(r, at+"/"+e, d)
		}
		return
	}
	d.Temperature, _ = strconv.Atoi(r.word("%s/temp1_input", at))
	d.Critical, _ = strconv.Atoi(r.word("%s/temp1_crit", at))
}
