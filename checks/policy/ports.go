package policy

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// Ports holds what is expected of a node's network ports: InfiniBand's and Ethernet's each.
type Ports struct {
	Count   int            `json:"count" yaml:"count"`     // ports that must be up; 0: every port that has been up on this node before
	Rate    int            `json:"rate" yaml:"rate"`       // Gb/s each of them must have; 0: the greatest it has had
	Require map[string]int `json:"require" yaml:"require"` // by names as in Ignore, of a device or of a port as mlx5_0/1: one of those ports must be up with so many Gb/s (NHC's check_hw_ib); 0: whatever its rate

	Ignore     string   `json:"ignore" yaml:"ignore"`           // names, with * and ?, separated by spaces, of devices that are never read: management ports
	Drop       Duration `json:"drop" yaml:"drop"`               // down for this long is a soft Fail (4m: leptonai/gpud)
	Flaps      int      `json:"flaps" yaml:"flaps"`             // down and up again this often within FlapWindow is a soft Fail that holds until boot or clear (3: leptonai/gpud); 0: never
	FlapDown   Duration `json:"flap_down" yaml:"flap_down"`     // a shorter time down is no flap (25s: leptonai/gpud)
	FlapWindow Duration `json:"flap_window" yaml:"flap_window"` // (12h: leptonai/gpud)

	Counters map[string]Limit `json:"counters" yaml:"counters"` // by the name of the file in sysfs
}

// A Limit is how far a counter may rise.
type Limit struct {
	Max     uint64   `json:"max" yaml:"max"`         // more than this …
	Within  Duration `json:"within" yaml:"within"`   // … within this time, once that long has been looked at
	Action  string   `json:"action" yaml:"action"`   // drain makes it a soft Fail; watch a Pass that is counted
	Strikes int      `json:"strikes" yaml:"strikes"` // after this many recoveries it stays a Fail until boot or clear; 0: never
}

// String is the limit for people, as "above 2 in 3h: drain, for good after 1 recovery".
func (l Limit) String() string {
	text := fmt.Sprintf("above %d in %s: %s", l.Max, l.Within, l.Action)
	switch {
	case l.Strikes == 1:
		text += ", for good after 1 recovery"
	case l.Strikes > 1:
		text += fmt.Sprintf(", for good after %d recoveries", l.Strikes)
	}
	return text
}

// defaultInfiniband: NVSentinel's nic-health-monitor for what may rise at all and for rates (symbol errors: 120 an hour is
// also what InfiniBand's own specification allows); Azure/cyclecloud-healthagent for link_downed (3 in 10,800 s, 1 strike).
func defaultInfiniband() Ports {
	m, h := Duration(time.Minute), Duration(time.Hour)
	return Ports{
		Drop: 4 * m, Flaps: 3, FlapDown: Duration(25 * time.Second), FlapWindow: 12 * h,
		Counters: map[string]Limit{
			"link_downed":                     {Max: 2, Within: 3 * h, Action: "drain", Strikes: 1},
			"symbol_error":                    {Max: 120, Within: h, Action: "drain"},
			"local_link_integrity_errors":     {Max: 0, Within: h, Action: "drain"},
			"excessive_buffer_overrun_errors": {Max: 0, Within: h, Action: "drain"},
			"link_error_recovery":             {Max: 5, Within: m, Action: "watch"},
			"port_rcv_errors":                 {Max: 600, Within: m, Action: "watch"},
		},
	}
}

// defaultEthernet: a down and an up are two changes of the carrier, so that five are two flaps and a third time down.
func defaultEthernet() Ports {
	p := defaultInfiniband()
	p.Counters = map[string]Limit{"carrier_changes": {Max: 5, Within: 3 * Duration(time.Hour), Action: "drain", Strikes: 1}}
	return p
}

func (v *validator) ports(at string, p Ports) {
	atLeast(v, at+".count", p.Count, 0)
	if p.Count > 1024 {
		v.add(at+".count", "%d: no node has more than 1024 ports", p.Count)
	}
	atLeast(v, at+".rate", p.Rate, 0)
	for pattern, rate := range p.Require {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" || strings.ContainsAny(pattern, " \t\n") {
			v.add(at+".require", "%q: want the name of a device or a port with * and ?, as mlx5_0, mlx5_0/1 or *", pattern)
		}
		atLeast(v, fmt.Sprintf("%s.require[%s]", at, pattern), rate, 0)
	}
	for _, pattern := range strings.Fields(p.Ignore) {
		if _, err := path.Match(pattern, ""); err != nil {
			v.add(at+".ignore", "%q: want names with * and ?, as mlx5_4 or eno*", pattern)
		}
	}
	v.within(at+".drop", p.Drop, time.Second, day)
	atLeast(v, at+".flaps", p.Flaps, 0)
	v.within(at+".flap_down", p.FlapDown, 0, day)
	v.within(at+".flap_window", p.FlapWindow, time.Second, 30*day)
	for name, l := range p.Counters {
		c := fmt.Sprintf("%s.counters.%s", at, name)
		if name == "" || strings.ContainsAny(name, "/ ") || name[0] == '.' {
			v.add(c, "want the name of a counter's file in sysfs, as link_downed")
		}
		v.within(c+".within", l.Within, time.Second, 30*day)
		oneOf(v, c+".action", l.Action, checks.Watch.String(), checks.Drain.String())
		atLeast(v, c+".strikes", l.Strikes, 0)
	}
}
