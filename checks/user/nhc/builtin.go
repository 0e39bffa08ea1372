package nhc

import (
	"fmt"
	"strconv"
	"strings"
)

// covered is how a check of assay's own stands for one of NHC's.
type covered struct {
	needs string         // the check's id
	why   string         // what it looks at, and what it leaves out
	set   map[string]any // the policy values to set; nil when it needs none
}

// builtIn gives what stands for a function of NHC's with these arguments; false when nothing does for those.
var builtIn = map[string]func(args []string) (covered, bool){
	"check_hw_cpuinfo":      cpuinfo,
	"check_hw_physmem":      physmem,
	"check_hw_ib":           infiniband,
	"check_hw_eth":          ethernet,
	"check_hw_mcelog":       always("memory", "memory counts the machine's own errors by module"),
	"check_nv_healthmon":    always("driver", "the GPU checks ask the driver themselves"),
	"check_nvsmi_healthmon": always("driver", "the GPU checks ask the driver themselves"),
	"check_fs_mount":        mount(false, false),
	"check_fs_mount_rw":     mount(true, true),
	"check_fs_mount_ro":     mount(true, false),
	"check_fs_size":         fsSize,
}

func always(id, why string) func([]string) (covered, bool) {
	return func([]string) (covered, bool) { return covered{needs: id, why: why}, true }
}

func tree(section string, values map[string]any) map[string]any {
	return map[string]any{section: values}
}

// cpuinfo is check_hw_cpuinfo [SOCKETS [CORES [THREADS]]].
func cpuinfo(args []string) (covered, bool) {
	if len(args) < 3 {
		return covered{}, false
	}
	n, err := strconv.Atoi(args[2])
	if err != nil || n < 1 || n > 65536 {
		return covered{}, false
	}
	return covered{"cpu", fmt.Sprintf("cpu counts the logical processors (%d); sockets and cores are not compared", n), tree("cpu", map[string]any{"count": n})}, true
}

// physmem is check_hw_physmem MIN MAX [FUDGE].
func physmem(args []string) (covered, bool) {
	if len(args) < 1 {
		return covered{}, false
	}
	least, ok := size(args[0])
	if !ok || least == 0 {
		return covered{}, false
	}
	set := map[string]any{"bytes": least}
	why := "memory holds the total to its least"
	if len(args) >= 2 && args[1] != args[0] {
		why += "; more than expected is no fault"
	}
	if len(args) >= 3 {
		share, err := strconv.ParseFloat(strings.TrimSuffix(args[2], "%"), 64)
		if err != nil || !strings.HasSuffix(args[2], "%") || share < 0 || share >= 100 {
			return covered{}, false // a size as fudge
		}
		set["tolerance"] = share / 100
	}
	return covered{"memory", why, tree("memory", set)}, true
}

// infiniband is check_hw_ib RATE [DEVICE[:PORT]]: one port, of the device or of any, is up at the rate.
func infiniband(args []string) (covered, bool) {
	if len(args) < 1 || len(args) > 2 {
		return covered{}, false
	}
	rate, err := strconv.Atoi(args[0])
	if err != nil || rate < 1 || rate > 1<<20 {
		return covered{}, false
	}
	names := "*"
	if len(args) > 1 {
		device, number, hasPort := strings.Cut(args[1], ":")
		if device == "" || strings.ContainsAny(args[1], "*?[]\\/ \t") || hasPort && (number == "" || strings.Trim(number, "0123456789") != "") {
			return covered{}, false
		}
		if names = device; hasPort {
			names += "/" + number
		}
	}
	why := fmt.Sprintf("infiniband sees that a port of %s is up with %d Gb/s or more", names, rate)
	if names == "*" {
		why = fmt.Sprintf("infiniband sees that a port is up with %d Gb/s or more", rate)
	}
	return covered{"infiniband", why + "; it watches every port that has been up besides", tree("infiniband", map[string]any{"require": map[string]any{names: rate}})}, true
}

func ethernet(args []string) (covered, bool) {
	if len(args) != 1 {
		return covered{}, false
	}
	return covered{"ethernet", "ethernet watches every port that has been up, " + args[0] + " too", nil}, true
}

// mount is check_fs_mount[_rw|_ro] [-t TYPE] [-s SOURCE] [-o OPTIONS] [-f] MOUNTPOINT…. writable is what the file system must be,
// where it is said.
func mount(said, writable bool) func([]string) (covered, bool) {
	return func(args []string) (covered, bool) {
		var kind string
		var points, without []string
		for i := 0; i < len(args); i++ {
			if len(args[i]) < 2 || args[i][0] != '-' {
				points = append(points, args[i])
				continue
			}
			opt := args[i][1]
			switch opt {
			case 'r', 'R', '0': // check_fs_mount -r and -R: try again, or not
				continue
			case 't', 's', 'o', 'O', 'f', 'e', 'E':
			default:
				return covered{}, false
			}
			if i++; i == len(args) {
				return covered{}, false
			}
			switch opt {
			case 'f':
				points = append(points, args[i])
			case 't':
				kind = args[i]
			case 's':
				without = append(without, "its source")
			case 'o', 'O':
				without = append(without, "its options")
			default:
				without = append(without, "the command that mends it")
			}
		}
		if len(points) == 0 || said && !writable {
			return covered{}, false // that one is read-only is not looked at
		}
		want := map[string]any{}
		for _, p := range points {
			if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "*?[]{}") {
				return covered{}, false
			}
			m := map[string]any{}
			if kind != "" && !strings.ContainsAny(kind, "/{}!*?[]|") {
				m["type"] = kind
			}
			if writable {
				m["writable"] = true
			}
			want[p] = m
		}
		if strings.ContainsAny(kind, "/{}!*?[]|") {
			without = append(without, "its type, which is a pattern")
		}
		why := "mounts sees that it is there and answers"
		if len(without) > 0 {
			why += "; not looked at: " + strings.Join(without, ", ")
		}
		return covered{"mounts", why, tree("mounts", map[string]any{"expect": want})}, true
	}
}

// fsSize is check_fs_size MOUNTPOINT MIN [MAX].
func fsSize(args []string) (covered, bool) {
	if len(args) < 2 || !strings.HasPrefix(args[0], "/") || strings.ContainsAny(args[0], "*?[]{}") {
		return covered{}, false
	}
	least, ok := size(args[1])
	if !ok {
		return covered{}, false
	}
	why := "mounts holds the file system to its least size"
	if len(args) > 2 {
		why += "; that it is not larger is not looked at"
	}
	return covered{"mounts", why, tree("mounts", map[string]any{"expect": map[string]any{args[0]: map[string]any{"min_bytes": least}}})}, true
}
