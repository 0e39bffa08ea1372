package policy

// Default is the built-in policy: observe only, and the thresholds that each section's file gives with its source. A
// section without a default of its own starts from its zero value.
func Default() Policy {
	return Policy{
		Mode:        Observe,
		ECC:         defaultECC(),
		RowRemap:    defaultRowRemap(),
		Retired:     defaultRetiredPages(),
		NVLink:      defaultNVLink(),
		Fabric:      defaultFabric(),
		PCIe:        defaultPCIe(),
		Clocks:      defaultClocks(),
		Thermal:     defaultThermal(),
		Modes:       defaultModes(),
		XID:         defaultXID(),
		AER:         defaultAER(),
		HostLog:     defaultHostLog(),
		DCGM:        defaultDCGM(),
		Golden:      defaultGolden(),
		Bandwidth:   defaultBandwidth(),
		Baseline:    defaultBaseline(),
		Infiniband:  defaultInfiniband(),
		Ethernet:    defaultEthernet(),
		Mounts:      defaultMounts(),
		Memory:      defaultMemory(),
		CPU:         defaultCPU(),
		Processes:   defaultProcesses(),
		Kernel:      defaultKernel(),
		NVMe:        defaultNVMe(),
		TimeSync:    defaultTimeSync(),
		Agent:       defaultAgent(),
		Hooks:       defaultHooks(),
		Certificate: defaultCertificate(),
		Guard:       defaultGuard(),
		Lifecycle:   defaultLifecycle(),
		Drill:       defaultDrill(),
		Lemons:      defaultLemons(),
	}
}
