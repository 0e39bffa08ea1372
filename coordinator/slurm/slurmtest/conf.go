package slurmtest

import (
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
)

// layout writes the cluster's files: keys, configuration, device nodes, the reboot program.
func (c *Cluster) layout() error {
	if err := os.Chmod(c.Dir, 0o755); err != nil {
		return err
	}
	for _, d := range []string{"state", "log", "spool", "run", "out", "dev", "reboot"} {
		if err := os.Mkdir(c.path(d), 0o755); err != nil {
			return err
		}
	}
	key := make([]byte, 128)
	_, _ = rand.Read(key) // never fails
	if err := os.WriteFile(c.path("munge.key"), key, 0o400); err != nil {
		return err
	}
	for i := range c.opts.GPUs {
		// Character device 1:3 is /dev/null: Slurm wants a device and never opens it.
		if err := syscall.Mknod(c.path("dev", "gpu"+strconv.Itoa(i)), syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
			return fmt.Errorf("make a device node: %w", err)
		}
	}
	reboot := "#!/bin/sh\n: >'" + c.path("reboot") + "/'\"$SLURMD_NODENAME\"\n"
	if err := os.WriteFile(c.path("reboot.sh"), []byte(reboot), 0o755); err != nil {
		return err
	}
	conf, err := c.slurmConf()
	if err != nil {
		return err
	}
	files := map[string]string{"slurm.conf": conf, "gres.conf": c.gresConf(), "topology.conf": c.topologyConf()}
	for name, text := range files {
		if err := os.WriteFile(c.path(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) slurmConf() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	host, _, _ = strings.Cut(host, ".")
	v := map[string]string{
		"ClusterName": "test", "SlurmctldHost": host + "(127.0.0.1)", "SlurmctldPort": strconv.Itoa(c.ports[0]),
		"SlurmUser": "root", "SlurmdUser": "root",
		"AuthType": "auth/munge", "AuthInfo": "socket=" + c.path("munge.sock") + ",cred_expire=5",
		"StateSaveLocation": c.path("state"), "SlurmdSpoolDir": c.path("spool") + "/%n",
		"SlurmctldPidFile": c.path("run", "slurmctld.pid"), "SlurmdPidFile": c.path("run") + "/slurmd.%n.pid",
		"SlurmctldLogFile": c.path("log", "slurmctld.log"), "SlurmdLogFile": c.path("log") + "/slurmd.%n.log",
		"SlurmctldDebug": "verbose", "SlurmdDebug": "verbose",
		"ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "JobAcctGatherType": "jobacct_gather/none", "MpiDefault": "none",
		"SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core",
		"SchedulerParameters": "bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0",
		"SlurmdParameters":    "config_overrides", // the host has fewer CPUs than its nodes
		"ReturnToService":     "2", "ResumeTimeout": "1800", "SlurmdTimeout": "60", "MessageTimeout": "10",
		"KillWait": "2", "EpilogMsgTime": "0", "MinJobAge": "600", "InactiveLimit": "0",
		"PrologFlags": "Alloc", "RebootProgram": c.path("reboot.sh"),
		"Prolog": c.opts.Prolog, "Epilog": c.opts.Epilog, "HealthCheckProgram": c.opts.HealthCheckProgram,
	}
	if c.opts.HealthCheckProgram != "" {
		v["HealthCheckInterval"] = strconv.Itoa(c.opts.HealthCheckInterval)
	}
	if c.opts.SchedulerParameters != "" {
		v["SchedulerParameters"] += "," + c.opts.SchedulerParameters
	}
	if c.opts.GPUs > 0 {
		v["GresTypes"] = "gpu"
	}
	if c.opts.Accounting {
		_, dbd := c.accountingPorts()
		v["AccountingStorageType"], v["AccountingStorageHost"], v["AccountingStoragePort"] = "accounting_storage/slurmdbd", "127.0.0.1", strconv.Itoa(dbd)
		v["AccountingStoragePass"] = c.path("munge.sock") // with munge this is what it names
		v["AccountingStorageTRES"] = "gres/gpu"
	}
	if c.opts.Leaf > 0 {
		v["TopologyPlugin"] = "topology/tree"
	}
	switch c.opts.RebootProgram {
	case "":
	case "none":
		delete(v, "RebootProgram")
	default:
		v["RebootProgram"] = c.opts.RebootProgram
	}
	for k, s := range c.opts.Conf {
		v[k] = s
	}
	var lines []string
	for k, s := range v {
		if s != "" {
			lines = append(lines, k+"="+s)
		}
	}
	sort.Strings(lines)
	gres := ""
	if c.opts.GPUs > 0 {
		gres = fmt.Sprintf(" Gres=gpu:h100:%d", c.opts.GPUs)
	}
	for i, n := range c.Nodes {
		lines = append(lines, fmt.Sprintf("NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=8 RealMemory=1000%s", n, host, c.ports[1+i], gres))
	}
	partitions := c.opts.Partitions
	if len(partitions) == 0 {
		partitions = []string{"PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP"}
	}
	lines = append(lines, partitions...)
	return strings.Join(lines, "\n") + "\n", nil
}

func (c *Cluster) gresConf() string {
	if c.opts.GPUs == 0 {
		return ""
	}
	return fmt.Sprintf("NodeName=%s Name=gpu Type=h100 File=%s[0-%d]\n", strings.Join(c.Nodes, ","), c.path("dev", "gpu"), c.opts.GPUs-1)
}

// topologyConf is a tree of leaf1 … leafN under one spine.
func (c *Cluster) topologyConf() string {
	if c.opts.Leaf == 0 {
		return ""
	}
	var b strings.Builder
	var leaves []string
	for i := 0; i < len(c.Nodes); i += c.opts.Leaf {
		leaf := fmt.Sprintf("leaf%d", len(leaves)+1)
		leaves = append(leaves, leaf)
		fmt.Fprintf(&b, "SwitchName=%s Nodes=%s\n", leaf, strings.Join(c.Nodes[i:min(i+c.opts.Leaf, len(c.Nodes))], ","))
	}
	fmt.Fprintf(&b, "SwitchName=spine Switches=%s\n", strings.Join(leaves, ","))
	return b.String()
}

// freePorts finds n ports in a row on which nothing listens, below those the kernel gives to outgoing connections.
func freePorts(n int) ([]int, error) {
	for range 100 {
		base := 20000 + mrand.IntN(12000-n)
		ports := make([]int, 0, n)
		for p := base; p < base+n; p++ {
			l, err := net.Listen("tcp", "0.0.0.0:"+strconv.Itoa(p))
			if err != nil {
				break
			}
			_ = l.Close()
			ports = append(ports, p)
		}
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports in a row between 20000 and 32000", n)
}
