package policy

// Fabric holds what is expected of a node with NVSwitches.
type Fabric struct {
	RequireManager bool `json:"require_manager" yaml:"require_manager"` // a fabric manager that does not run is a soft Fail, fix_config; else it is watched
}

func defaultFabric() Fabric { return Fabric{RequireManager: true} }
