package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/port"
)

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// ignored reports whether policy has the device left alone: reading it may make its driver complain in the kernel log
// (leptonai/gpud 1164, 1167).
func ignored(device string, p policy.Ports) bool {
	for _, pattern := range strings.Fields(p.Ignore) {
		if ok, _ := path.Match(pattern, device); ok {
			return true
		}
	}
	return false
}

// wasUp remembers that a port is up, and reports whether it ever was in this run. The counters of one that never was are
// not read.
func (p *Probe) wasUp(name string, up bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if up {
		p.up[name] = true
	}
	return p.up[name]
}

// devices lists a class of devices, and says how that went.
func devices(r *recorder, class string) ([]string, checks.Availability, string) {
	names, err := r.List(class)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, checks.NotSupported, ""
	case err != nil:
		return nil, checks.Unread, class + ": " + err.Error()
	}
	return names, checks.Read, ""
}

// infiniband reads every RDMA port. Files: Linux Documentation/ABI/stable/sysfs-class-infiniband.
func (p *Probe) infiniband(r *recorder, pol policy.Ports) port.Reading {
	names, have, why := devices(r, "sys/class/infiniband")
	out := port.Reading{Have: have, Err: why}
	for _, dev := range names {
		at := "sys/class/infiniband/" + dev
		if ignored(dev, pol) || isVirtual(r, at) {
			continue
		}
		pci := deviceOf(r, at)
		ports, err := r.List(at + "/ports")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			out.Ports = append(out.Ports, port.Port{Name: dev, PCI: pci, Err: err.Error()})
		}
		for _, n := range ports {
			out.Ports = append(out.Ports, p.infinibandPort(r, port.Port{Name: dev + "/" + n, PCI: pci}, at+"/ports/"+n, pol))
		}
	}
	return out
}

func (p *Probe) infinibandPort(r *recorder, x port.Port, at string, pol policy.Ports) port.Port {
	state, err := r.Text(at + "/state")
	if err != nil {
		x.Err = "state: " + err.Error()
		return x
	}
	_, state, ok := strings.Cut(strings.TrimSpace(state), ": ")
	_, phys, ok2 := strings.Cut(r.word("%s/phys_state", at), ": ")
	if !ok || !ok2 {
		x.Err = "state and phys_state are not as the kernel writes them"
		return x
	}
	x.State, x.Up, x.Disabled = state+" "+phys, state == "ACTIVE" && phys == "LinkUp", phys == "Disabled"
	if x.Up {
		x.Rate, x.Width = rate(r.word("%s/rate", at))
	}
	if p.wasUp(port.Infiniband+x.Name, x.Up) {
		x.Counters, x.Unread = counters(r, pol, []string{"link_downed"}, at+"/counters/", at+"/hw_counters/")
	}
	return x
}

// rate reads "400 Gb/sec (4X NDR)": Gb/s, and lanes with speed.
func rate(s string) (gbps int, width string) {
	number, rest, _ := strings.Cut(s, " ")
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f < 0 || f > 1e6 {
		return 0, ""
	}
	if _, w, ok := strings.Cut(rest, "("); ok {
		width = strings.TrimSuffix(w, ")")
	}
	return int(f), width
}

// counters reads those of policy, and those that tell of a lost link, in the first of the folders that has each. unread are
// those that the device has and that could not be read, with why.
func counters(r *recorder, pol policy.Ports, also []string, folders ...string) (out map[string]uint64, unread []string) {
	names := slices.Concat(also, slices.Sorted(maps.Keys(pol.Counters)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		why := ""
		for _, folder := range folders {
			n, have, err := count(r, folder+name)
			if have {
				if out == nil {
					out = map[string]uint64{}
				}
				out[name], why = n, ""
				break
			}
			if err != nil && why == "" {
				why = name + ": " + err.Error()
			}
		}
		if why != "" {
			unread = append(unread, why)
		}
	}
	return out, unread
}

// count reads one counter. Neither it nor an error: the device does not have it. The kernel has files for all that InfiniBand
// knows, and says of those that a device does not count "N/A (no PMA)", or that the argument or the operation is none
// (Linux drivers/infiniband/core/sysfs.c).
func count(r *recorder, name string) (n uint64, have bool, err error) {
	text, err := r.Text(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EOPNOTSUPP):
		return 0, false, nil
	case err != nil:
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err // the counter is named beside it
		}
		return 0, false, err
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "N/A") {
		return 0, false, nil
	}
	if n, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, false, fmt.Errorf("%q is no number", text)
	}
	return n, true, nil
}

// isVirtual reports whether the device is a virtual function: its physical one speaks for it.
func isVirtual(r *recorder, at string) bool {
	_, err := r.Link(at + "/device/physfn")
	return err == nil
}

// deviceOf is the PCI address of what stands behind a class device; empty when that is on no PCI bus.
func deviceOf(r *recorder, at string) string {
	to, err := r.Link(at + "/device")
	if err != nil {
		return ""
	}
	if name := strings.ToLower(path.Base(to)); pciAddress.MatchString(name) {
		return name
	}
	return ""
}

// The kernel's numbers. Source: Linux include/uapi/linux/if_arp.h, if.h.
const (
	hardwareEthernet = "1"
	flagUp           = 1
)

// ethernet reads every physical interface. Files: Linux Documentation/ABI/testing/sysfs-class-net.
func (p *Probe) ethernet(r *recorder, pol policy.Ports) port.Reading {
	names, have, why := devices(r, "sys/class/net")
	out := port.Reading{Have: have, Err: why}
	for _, name := range names {
		at := "sys/class/net/" + name
		to, err := r.src.Link(at + "/device")
		if err != nil || ignored(name, pol) { // bridges, bonds and the loopback stand before no device
			continue
		}
		base := path.Base(to)
		if !pciAddress.MatchString(strings.ToLower(base)) && !strings.HasPrefix(base, "virtio") || isVirtual(r, at) || r.word("%s/type", at) != hardwareEthernet {
			continue
		}
		out.Ports = append(out.Ports, p.ethernetPort(r, port.Port{Name: name, PCI: deviceOf(r, at)}, at, pol))
	}
	return out
}

func (p *Probe) ethernetPort(r *recorder, x port.Port, at string, pol policy.Ports) port.Port {
	state, err := r.Text(at + "/operstate")
	if err != nil {
		x.Err = "operstate: " + err.Error()
		return x
	}
	x.State = strings.TrimSpace(state)
	flags, err := strconv.ParseUint(strings.TrimPrefix(r.word("%s/flags", at), "0x"), 16, 64)
	x.Disabled = err == nil && flags&flagUp == 0
	// carrier cannot be read while the interface is switched off. Drivers that do not follow it say unknown.
	x.Up = x.State == "up" || x.State == "unknown" && r.word("%s/carrier", at) == "1"
	if p.wasUp(port.Ethernet+x.Name, x.Up) {
		if mbps, err := strconv.Atoi(r.word("%s/speed", at)); x.Up && err == nil && mbps > 0 {
			x.Rate = mbps / 1000
		}
		x.Counters, x.Unread = counters(r, pol, []string{"carrier_changes"}, at+"/", at+"/statistics/")
	}
	return x
}
