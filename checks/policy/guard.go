package policy

import "time"

// Guard holds the budgets for automatic steps that take capacity. A budget is
// max(1, min(absolute, share × schedulable GPU nodes at the window's start)).
type Guard struct {
	FleetHourShare float64  `json:"fleet_hour_share" yaml:"fleet_hour_share"`
	FleetDayShare  float64  `json:"fleet_day_share" yaml:"fleet_day_share"`
	FleetHourMax   int      `json:"fleet_hour_max" yaml:"fleet_hour_max"`       // absolute, nodes an hour
	LeafHourShare  float64  `json:"leaf_hour_share" yaml:"leaf_hour_share"`     // of the nodes under one leaf switch
	ReasonShare    float64  `json:"reason_hour_share" yaml:"reason_hour_share"` // of the fleet, for one reason
	StormNodes     int      `json:"storm_nodes" yaml:"storm_nodes"`             // at least this many nodes of different chassis …
	StormShare     float64  `json:"storm_share" yaml:"storm_share"`             // … and more than this share of those that could show it …
	StormWindow    Duration `json:"storm_window" yaml:"storm_window"`           // … within this time is a storm: stop and page
	HardPageShare  float64  `json:"hard_page_share" yaml:"hard_page_share"`     // hard faults above this share of nodes an hour page
	DryRun         bool     `json:"dry_run" yaml:"dry_run"`                     // the guard gives no room, and says what it would have given it to
}

func defaultGuard() Guard {
	return Guard{
		FleetHourShare: 0.02, FleetDayShare: 0.05, FleetHourMax: 20, LeafHourShare: 0.25, ReasonShare: 0.25,
		StormNodes: 3, StormShare: 0.02, StormWindow: hour, HardPageShare: 0.01,
	}
}

func (v *validator) guard(g Guard) {
	v.share("guard.fleet_hour_share", g.FleetHourShare)
	v.share("guard.fleet_day_share", g.FleetDayShare)
	v.share("guard.leaf_hour_share", g.LeafHourShare)
	v.share("guard.reason_hour_share", g.ReasonShare)
	v.share("guard.storm_share", g.StormShare)
	v.share("guard.hard_page_share", g.HardPageShare)
	atLeast(v, "guard.fleet_hour_max", g.FleetHourMax, 1)
	atLeast(v, "guard.storm_nodes", g.StormNodes, 1)
	v.within("guard.storm_window", g.StormWindow, time.Second, day)
	if g.FleetDayShare < g.FleetHourShare {
		v.add("guard.fleet_day_share", "%v: below fleet_hour_share, %v", g.FleetDayShare, g.FleetHourShare)
	}
}
