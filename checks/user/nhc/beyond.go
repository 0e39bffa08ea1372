package nhc

// beyond says why nothing built in stands for a function of NHC's.
var beyond = map[string]string{
	"check_cmd_output": "only the command can say it", "check_cmd_status": "only the command can say it",
	"check_dmi_data_match": ofDMI, "check_dmi_raw_data_match": ofDMI,
	"check_file_contents": ofFiles, "check_file_stat": ofFiles, "check_file_test": ofFiles,
	"check_fs_free": ofRoom, "check_fs_used": ofRoom, "check_fs_inodes": ofRoom, "check_fs_ifree": ofRoom, "check_fs_iused": ofRoom,
	"check_hw_gm":  "assay does not read Myrinet's GM",
	"check_hw_mem": ofMemory, "check_hw_mem_free": ofMemory, "check_hw_physmem_free": ofMemory, "check_hw_swap": ofMemory, "check_hw_swap_free": ofMemory,
	"check_moab_sched": ofMoab, "check_moab_rm": ofMoab, "check_moab_torque": ofMoab,
	"check_net_ping": ofNet, "check_net_socket": ofNet,
	"check_ps_blacklist": ofProcesses, "check_ps_cpu": ofProcesses, "check_ps_daemon": ofProcesses, "check_ps_kswapd": ofProcesses, "check_ps_loadavg": ofProcesses,
	"check_ps_mem": ofProcesses, "check_ps_physmem": ofProcesses, "check_ps_service": ofProcesses, "check_ps_time": ofProcesses,
	"check_ps_unauth_users": ofProcesses, "check_ps_userproc_lineage": ofProcesses,
}

const (
	ofDMI       = "of DMI assay reads the node's serial alone"
	ofFiles     = "assay looks at no file of the site's"
	ofRoom      = "assay's mounts has one limit of its own for every local file system, mounts.max_used, and none for one alone"
	ofMemory    = "assay's memory holds the total of the modules to what is expected, not swap nor what is free at the time"
	ofMoab      = "assay knows neither Moab nor Torque"
	ofNet       = "assay sends nothing into the network to try it"
	ofProcesses = "assay's processes looks at those that hang, not at whose they are or what they use"
)

// beyondOf is why NHC goes on with a check.
func beyondOf(name string) string {
	if why, ok := beyond[name]; ok {
		return why
	}
	return "with these arguments no check of assay's says the same"
}
