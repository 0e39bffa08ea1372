package policy

import "time"

// Default is the built-in policy: observe only, and the thresholds of DESIGN with their sources in the field comments.
func Default() Policy {
	s, m, h := Duration(time.Second), Duration(time.Minute), Duration(time.Hour)
	return Policy{
		Mode:     Observe,
		ECC:      ECC{MaxVolatileUncorrected: 0, MaxVolatileCorrected: 50_000_000, RequireEnabled: true}, // 50 M: facebookresearch/gcm
		RowRemap: RowRemap{MaxCorrectable: 10},
		Agent: Agent{
			Interval: 30 * s, Heartbeat: 10 * s, CallDeadline: 5 * s, InitDeadline: 30 * s, HungChildren: 3, StuckChild: 60 * s,
			SpoolBytes: 64 << 20, IncidentGap: 30 * s, IncidentCause: 45 * s,
		},
		Hooks: Hooks{Budget: 14 * s, PermitWait: 4 * s, OfflineMax: 4 * h, SnapshotAge: 60 * s, FailMode: "open", ReleaseTries: 2},
		Certificate: Certificate{
			QuickMIG: 12 * h, Quick: 12 * h, Standard: 24 * h, Soak: 7 * 24 * h, Intake: 30 * 24 * h, Grace: 12 * h,
		},
		Guard: Guard{
			FleetHourShare: 0.02, FleetDayShare: 0.05, FleetHourMax: 20, LeafHourShare: 0.25, ReasonShare: 0.25,
			StormNodes: 3, StormShare: 0.02, StormWindow: h, HardPageShare: 0.01,
		},
		Lifecycle: Lifecycle{
			HeartbeatTimeout: 60 * s, LostShare: 0.05, LostNodes: 3, RetestWithin: 24 * h, DrainDeadline: 24 * h, DrainJob: "wait", DrainGang: "wait",
			EvidenceDeadline: 5 * m, ResetDeadline: 10 * m, RebootDeadline: 45 * m, ScreenDeadline: 30 * m, ScreenTries: 3,
			RepeatWindow: 30 * 24 * h, RebootsPerDay: 2, OverrideFor: 24 * h, PersonDeadline: 24 * h, RMAQuiet: 30 * 24 * h,
			HardCaseLevel: "standard", SoftCaseLevel: "quick", SlurmInterval: 10 * s,
		},
	}
}
