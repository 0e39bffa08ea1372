package policy

// NVMe holds what is expected of a node's NVMe disks.
type NVMe struct {
	Count  int `json:"count" yaml:"count"`   // disks; 0: those this node has shown
	Margin int `json:"margin" yaml:"margin"` // a disk within this many °C of its own critical temperature is watched

	FailWarnings     int    `json:"fail_warnings" yaml:"fail_warnings"`           // bits of the disk's critical warning that are a soft Fail; its others are watched
	WatchSpare       int    `json:"watch_spare" yaml:"watch_spare"`               // with less than so many percent of its spare blocks a disk is watched
	WatchUsed        int    `json:"watch_used" yaml:"watch_used"`                 // with more than so many percent of its life used a disk is watched
	WatchMediaErrors uint64 `json:"watch_media_errors" yaml:"watch_media_errors"` // with so many media errors a disk is watched; 0: never
}

// defaultNVMe: of the warnings, spare blocks, reliability, read-only and the backup of its memory, bits 0, 2, 3 and 4 (NVM Express
// Base Specification 2.0, figure 207), mean that data may be lost. The percentages are ours: time to order a disk.
func defaultNVMe() NVMe {
	return NVMe{Count: 0, Margin: 5, FailWarnings: 1<<0 | 1<<2 | 1<<3 | 1<<4, WatchSpare: 20, WatchUsed: 90, WatchMediaErrors: 1}
}

func (v *validator) nvme(n NVMe) {
	atLeast(v, "nvme.count", n.Count, 0)
	if n.Count > 256 {
		v.add("nvme.count", "%d: no node has more than 256 disks", n.Count)
	}
	if n.FailWarnings < 0 || n.FailWarnings > 255 {
		v.add("nvme.fail_warnings", "%d: want 0 to 255, eight bits", n.FailWarnings)
	}
	if n.WatchSpare < 0 || n.WatchSpare > 100 {
		v.add("nvme.watch_spare", "%d: want 0 to 100 %%", n.WatchSpare)
	}
	if n.WatchUsed < 0 || n.WatchUsed > 255 {
		v.add("nvme.watch_used", "%d: want 0 to 255 %%", n.WatchUsed)
	}
	if n.Margin < 0 || n.Margin > 100 {
		v.add("nvme.margin", "%d: want 0 to 100 °C", n.Margin)
	}
}
