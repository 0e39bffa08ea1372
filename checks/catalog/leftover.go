package catalog

import "github.com/assay-gpu/assay/checks/leftover"

func leftoverChecks() []Check {
	return []Check{{
		ID: leftover.ID, Title: "a job leaves no process on its GPUs", Unit: "processes",
		Doc: `At a job's end, compares the processes on its GPUs with those that were there when it began. One that the job left
holds memory the next job counts on, and is often stuck in the driver. GPUs that another job uses as well are not judged. The
last processes of a job may take a moment to go: it is a fault when they are there at three looks, two seconds apart.`,
		Source:   "nvmlDeviceGetComputeRunningProcesses; facebookresearch/gcm looks three times",
		Applies:  "every NVIDIA GPU outside MIG mode, whose job's prolog was seen",
		Action:   "drain",
		Cost:     "1 call a GPU, more where many processes run",
		Revision: 1,
		Neighbours: Neighbours{
			NHC: "gcm: processes left after three looks of 3 s; may kill them", Gpud: "processes are shown", NVSentinel: "none", DCGM: "none",
		},
	}}
}
