#!/usr/bin/env bash
# Placements beside a real Slurm: the same gangs come at the same seconds to a slurmctld with 128 slurmd of eight GPUs, and to
# assay sim; both under leaves of 16 nodes and one spine, with backfill, priority by age and size alike, and no fair share.
#
#   packaging/bench/slurm-quality.sh [SEED]
#
# The trace is of assay sim generate, like Kalos's, in compressed time: runs are cut at an hour, then SCALE (30) times as short
# with a second at least, and jobs come so that they ask LOAD (0.95) of the GPU time. Limits are whole minutes in both, as Slurm
# has them. JOBS (400) and NODES (128) size it. Slurm is given LIMIT (900) seconds. What each did is scored by the same rules
# (packaging/bench/placed). Needs root for the device files that Slurm's gres wants, and Slurm and munge (make deps). All that it starts
# listens on the loopback and ends with it.
set -euo pipefail
cd "$(dirname "$0")/../.."
GO=${GO:-go} seed=${1:-1}
jobs=${JOBS:-400} nodes=${NODES:-128} scale=${SCALE:-30} load=${LOAD:-0.95} limit=${LIMIT:-900}
export PATH="$PATH:/usr/sbin:/sbin"
for program in slurmctld slurmd sbatch squeue munged; do
	command -v "$program" >/dev/null || { echo "slurm-quality.sh: $program is not there (make deps)" >&2; exit 1; }
done
dir=$(mktemp -d)
chmod 755 "$dir"
pids=()
cleanup() {
	for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
	for _ in {1..50}; do
		[[ ${pids[*]} ]] && kill -0 "${pids[@]}" 2>/dev/null || break
		sleep 0.2
	done
	for p in "${pids[@]}"; do kill -KILL "$p" 2>/dev/null || true; done
	for p in "${pids[@]}"; do wait "$p" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap cleanup EXIT

"$GO" build -o "$dir/assay" ./cmd/assay
"$GO" build -o "$dir/placed" ./packaging/bench/placed
"$dir/assay" sim generate --profile kalos --jobs "$jobs" --nodes "$nodes" --load "$load" --seed "$seed" |
	awk -F, -v OFS=, -v scale="$scale" -v load="$load" -v gpus=$((nodes * 8)) '
		function ceil(x) { return x == int(x) ? x : int(x) + 1 }
		NR == 1 { print; next }
		{
			n++; at[n] = $3; size[n] = $6 * $7; rows[n] = $6 OFS $7
			run[n] = int(($4 < 3600 ? $4 : 3600) / scale); if (run[n] < 1) run[n] = 1
			asked = ($5 < 7200 ? $5 : 7200) / scale; if (asked < run[n] + 5) asked = run[n] + 5
			limit[n] = 60 * ceil(asked / 60)
			work += run[n] * size[n]
		}
		END { for (i = 1; i <= n; i++) print "u", "all", int(at[i] * work / gpus / load / at[n]), run[i], limit[i], rows[i], 0, "" }' >"$dir/trace.csv"
arrive=$(tail -n 1 "$dir/trace.csv" | cut -d, -f3)
echo "== $jobs gangs over $arrive s on $nodes nodes, seed $seed"

mkdir -p "$dir"/{state,log,munge,spool,dev}
chmod 700 "$dir/munge"
dd if=/dev/urandom of="$dir/munge/key" bs=1024 count=1 status=none
chmod 600 "$dir/munge/key"
munged --force --foreground --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
	--log-file="$dir/munge/log" --seed-file="$dir/munge/seed" --num-threads=4 >/dev/null 2>&1 &
pids+=($!)
for g in {0..7}; do mknod "$dir/dev/gpu$g" c 1 3; done
taken() { awk -v from="$1" -v to="$2" 'FNR > 1 { split($2, a, ":"); p = 0; for (i = 1; i <= 4; i++) p = 16 * p + index("123456789ABCDEF", substr(a[2], i, 1)); if (p >= from && p <= to) found = 1 } END { exit !found }' /proc/net/tcp /proc/net/tcp6; }
while port=$((10000 + RANDOM % 18000)) && taken "$port" $((port + nodes)); do :; done # one port for each slurmd
last=$(printf %03d "$nodes")
cat >"$dir/slurm.conf" <<CONF
ClusterName=bench
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/spool/%n/pid
SlurmdSpoolDir=$dir/spool/%n
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/%n.log
SlurmctldPort=$port
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=default_queue_depth=1000,bf_max_job_test=1000,bf_interval=2,bf_resolution=1,bf_continue,sched_min_interval=0
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=1000
PriorityMaxAge=7-0
TopologyPlugin=topology/tree
JobCompType=jobcomp/filetxt
JobCompLoc=$dir/log/done
GresTypes=gpu
MpiDefault=none
MessageTimeout=60
SlurmdTimeout=600
ReturnToService=2
NodeName=n[001-$last] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=64 RealMemory=1000 Gres=gpu:8
PartitionName=gpu Nodes=ALL Default=YES MaxTime=7-0 State=UP
CONF
echo "Name=gpu File=$dir/dev/gpu[0-7]" >"$dir/gres.conf"
leaves=$(((nodes + 15) / 16))
for ((l = 0; l < leaves; l++)); do
	printf 'SwitchName=leaf%d Nodes=n[%03d-%03d]\n' "$l" $((l * 16 + 1)) $((l * 16 + 16 < nodes ? l * 16 + 16 : nodes))
done >"$dir/topology.conf"
echo "SwitchName=spine Switches=leaf[0-$((leaves - 1))]" >>"$dir/topology.conf"
export SLURM_CONF=$dir/slurm.conf
slurmctld -D -f "$dir/slurm.conf" >"$dir/log/out" 2>&1 &
pids+=($!)
for n in $(seq -f n%03g 1 "$nodes"); do
	mkdir -p "$dir/spool/$n"
	slurmd -D -N "$n" -f "$dir/slurm.conf" >>"$dir/log/slurmd.out" 2>&1 &
	pids+=($!)
done
up() { timeout 30 sinfo -h -t idle -o %D 2>/dev/null || true; }
for _ in {1..240}; do [[ $(up) == "$nodes" ]] && break; sleep 0.5; done
[[ $(up) == "$nodes" ]] || { echo "slurm-quality.sh: not all slurmd came up" >&2; tail -n 20 "$dir/log/slurmctld.log" >&2; exit 1; }

SECONDS=0 at=0 shown=0
while IFS=, read -r _ _ submit run wall count gpus _; do
	((++at))
	while ((SECONDS < submit)); do sleep 0.1; done
	printf '#!/bin/sh\nsleep %d\n' "$run" | (cd "$dir" && sbatch -Q -J "$at" --nodes="$count" --ntasks-per-node=1 --gres="gpu:$gpus" --mem=1 --time=$((wall / 60)) -o /dev/null)
	((SECONDS < shown + 15)) || { shown=$SECONDS; echo "  $SECONDS s: $at of $jobs submitted, $(grep -c . "$dir/log/done" 2>/dev/null || true) ended" >&2; }
done < <(tail -n +2 "$dir/trace.csv")
ended() { grep -c . "$dir/log/done" 2>/dev/null || true; }
while ((SECONDS < limit)) && (($(ended) < jobs)); do
	((SECONDS < shown + 15)) || { shown=$SECONDS; echo "  $SECONDS s: $jobs submitted, $(ended) ended" >&2; }
	sleep 1
done
(($(ended) == jobs)) || echo "slurm-quality.sh: $(ended) of $jobs ended in $limit s: the others are not in the figures" >&2

# Names are the jobs' numbers in the trace; times are local, to the second.
awk -F, 'NR > 1 { print NR - 1, $4, $7 }' "$dir/trace.csv" >"$dir/asked"
awk 'FNR == NR { run[$1] = $2; gpus[$1] = $3; next }
	{
		delete f
		for (i = 1; i <= NF; i++) { k = index($i, "="); f[substr($i, 1, k - 1)] = substr($i, k + 1) }
		split("SubmitTime StartTime EndTime", names, " "); line = ""
		for (i = 1; i <= 3; i++) { t = f[names[i]]; gsub(/[-T:]/, " ", t); line = line mktime(t) " " }
		print line run[f["Name"]], gpus[f["Name"]], f["NodeList"]
	}' "$dir/asked" "$dir/log/done" >"$dir/slurm.log"
echo "== Slurm $(slurmctld -V | cut -d' ' -f2)"
"$dir/placed" "$nodes" 8 16 <"$dir/slurm.log"
echo "== assay sim"
"$dir/assay" sim "$dir/trace.csv" --nodes "$nodes" --leaf 16 --plan 30s --policy backfill,easy,fifo | grep -E 'BACKFILL|GPU time in use|leaves|slowdown|wait of all'
