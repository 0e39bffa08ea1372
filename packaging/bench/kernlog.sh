#!/usr/bin/env bash
# How fast a kernel log is read: lines that say nothing of ours, beside grep -E on the same file, and a flood of XIDs.
#
#   packaging/bench/kernlog.sh             one million lines
#   packaging/bench/kernlog.sh 200000      fewer
#
# BIN (bin) holds the program. Times are of the processor, user and system together, so that other work on the machine counts less. Exits 1 when fewer
# than 500,000 lines a second and core are read, or a million XID lines of ten kinds take 3 s or more.
set -euo pipefail
cd "$(dirname "$0")/../.."
lines=${1:-1000000}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
agent=$(realpath "${BIN:-bin}")/assay-agent
[[ -x $agent ]] || { echo "kernlog.sh: $agent is not there (make)" >&2; exit 1; }

awk -v n="$lines" 'BEGIN {
	m[0] = "usb 1-1: new high-speed USB device number 2 using xhci_hcd"
	m[1] = "audit: type=1400 audit(1724999999.123:42): apparmor=\"STATUS\" operation=\"profile_load\" profile=\"unconfined\" name=\"nvidia_modprobe\" pid=812 comm=\"apparmor_parser\""
	m[2] = "EXT4-fs (nvme0n1p2): mounted filesystem 8a1c with ordered data mode. Quota mode: none."
	m[3] = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.58.03  Release Build"
	m[4] = "docker0: port 1(veth1a2b3c) entered forwarding state"
	m[5] = "mlx5_core 0000:4b:00.0: firmware version: 28.39.1002"
	m[6] = "perf: interrupt took too long (2503 > 2500), lowering kernel.perf_event_max_sample_rate to 79750"
	m[7] = "slurm.epilog.sh (12345): drop_caches: 3"
	for (i = 0; i < n; i++) printf "[%5d.%06d] %s\n", i / 1000, i % 1000 * 1000, m[i % 8]
}' >"$dir/quiet"
awk 'BEGIN {
	for (i = 0; i < 1000000; i++)
		printf "[%5d.%06d] NVRM: Xid (PCI:0000:%02x:00): 95, pid=%d, name=python3, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No\n", 1 + i / 1000, i % 1000 * 1000, i % 10 + 1, 4000 + i % 10
}' >"$dir/flood"
words='Xid \(|fallen off the bus|detected NVSwitch |AER: |PCIe Bus Error: |no AER-aware driver|:    \[|aer_status: |NVRM: .*(RmInitAdapter failed|rm_init_adapter|requiring os reboot|NV_ERR_|eartbeat timed out|Rx ?Det)|all links are inActive|nvidia-peermem |mlx5_core .*(timeout\. Will|compromised|unrecoverable|Port module|Cable|TX timeout|insufficient power|ACCESS_REG|Link )|NETDEV WATCHDOG|blocked for more than |soft lockup|ard LOCKUP|detected stall|ut of memory: Kill|Memory failure|\[Hardware Error\]|mce: |EDAC MC'

cpu() { # command…: its processor time in seconds, whatever its exit status
	local TIMEFORMAT='%U %S'
	{ time "$@" >/dev/null 2>&1 || true; } 2>&1 | awk '{ print $1 + $2 }'
}
rate() { awk -v n="$1" -v t="$2" 'BEGIN { printf "%.0f", n / (t > 0.001 ? t : 0.001) }'; }

"$agent" check log "$dir/quiet" >/dev/null # both files and the program are in memory from here on
ours=$(cpu "$agent" check log "$dir/quiet")
theirs=$(cpu grep -cE "$words" "$dir/quiet")
c=$(cpu env LC_ALL=C grep -cE "$words" "$dir/quiet")
flood=$(cpu "$agent" check log "$dir/flood")
status=0
printf '%-52s %8s %14s\n' 'lines that say nothing' 'CPU s' 'lines/s'
printf '%-52s %8.2f %14s\n' 'assay-agent check log' "$ours" "$(rate "$lines" "$ours")" 'grep -E, this locale' "$theirs" "$(rate "$lines" "$theirs")" 'grep -E, LC_ALL=C' "$c" "$(rate "$lines" "$c")"
printf '%-52s %8.2f %14s\n' '1,000,000 XID lines of ten kinds, assay-agent' "$flood" "$(rate 1000000 "$flood")"
"$agent" check log "$dir/flood" | tail -n 1 || true
(($(rate "$lines" "$ours") >= 500000)) || { echo "under 500,000 lines a second and core" >&2; status=1; }
awk -v t="$flood" 'BEGIN { exit !(t < 3) }' || { echo "the flood took 3 s or more" >&2; status=1; }
exit $status
