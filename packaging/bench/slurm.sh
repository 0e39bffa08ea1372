#!/usr/bin/env bash
# Gangs a second beside a real slurmctld: the same 1,217 gangs of 1 to 256 nodes (7,936 in all), on the same tree of 10,000
# nodes. Slurm: from the first sbatch to the last start, four sbatch at once; its nodes are of State=CLOUD, so that no slurmd is
# needed. assay: from the start of one `assay job submit --batch` to the last gang whose place is durable, etcd with fsync.
#
#   packaging/bench/slurm.sh                a made tree: 500 leaves of 20 nodes, 25 aggregation switches, 2 cores
#   packaging/bench/slurm.sh TOPOLOGY       a topology.conf of nodes gpu[00001-10000]
#
# Slurm gets LIMIT seconds (900) from the first sbatch: what has not started by then is counted as not started. Needs slurmctld,
# sbatch, sdiag and munged (make deps). All that it starts listens on the loopback and ends with it.
set -euo pipefail
cd "$(dirname "$0")/../.."
GO=${GO:-go}
for program in slurmctld sbatch squeue sdiag munged; do
	PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null || { echo "slurm.sh: $program is not there (make deps)" >&2; exit 1; }
done
export PATH="$PATH:/usr/sbin:/sbin"
dir=$(mktemp -d)
chmod 755 "$dir"
pids=()
cleanup() {
	for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
	for _ in {1..50}; do # a slurmctld that is busy does not hear the first signal
		[[ ${pids[*]} ]] && kill -0 "${pids[@]}" 2>/dev/null || break
		sleep 0.2
	done
	for p in "${pids[@]}"; do kill -KILL "$p" 2>/dev/null || true; done
	for p in "${pids[@]}"; do wait "$p" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap cleanup EXIT

if [[ ${1:-} ]]; then
	grep -v '^#' "$1" >"$dir/topology.conf"
else
	for l in $(seq 0 499); do printf 'SwitchName=leaf%03d Nodes=gpu[%05d-%05d]\n' "$l" $((l * 20 + 1)) $((l * 20 + 20)); done >"$dir/topology.conf"
	for a in $(seq 0 24); do printf 'SwitchName=agg%02d Switches=leaf[%03d-%03d]\n' "$a" $((a * 20)) $((a * 20 + 19)); done >>"$dir/topology.conf"
	printf 'SwitchName=core1 Switches=agg[00-12]\nSwitchName=core2 Switches=agg[13-24]\nSwitchName=root Switches=core[1-2]\n' >>"$dir/topology.conf"
fi

gangs() { # one size a line, in an order that is the same each time
	for x in 600:1 200:2 150:4 120:8 80:16 40:32 16:64 8:128 3:256; do
		for ((i = 0; i < ${x%:*}; i++)); do echo "${x#*:}"; done
	done | shuf --random-source=<(yes)
}

if [[ ! ${SKIP_SLURM:-} ]]; then
	mkdir -p "$dir"/{state,log,munge}
	chmod 700 "$dir/munge"
	dd if=/dev/urandom of="$dir/munge/key" bs=1024 count=1 status=none
	chmod 600 "$dir/munge/key"
	munged --force --foreground --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
		--log-file="$dir/munge/log" --seed-file="$dir/munge/seed" --num-threads=4 >/dev/null 2>&1 &
	pids+=($!)
	port=$((20000 + RANDOM % 9000))
	cat >"$dir/slurm.conf" <<CONF
ClusterName=bench
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmctldPort=$port
SlurmdPort=$((port + 1))
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=default_queue_depth=10000,bf_max_job_test=10000,sched_min_interval=0,max_sched_time=60,bf_interval=5,bf_max_time=60
TopologyPlugin=topology/tree
GresTypes=gpu
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=-1
ResumeTimeout=3600
ResumeRate=0
MpiDefault=none
MessageTimeout=100
MaxJobCount=200000
NodeName=gpu[00001-10000] CPUs=96 RealMemory=2000000 Gres=gpu:h100:8 State=CLOUD
PartitionName=gpu Nodes=ALL Default=YES MaxTime=7-0 State=UP
CONF
	echo 'NodeName=gpu[00001-10000] Name=gpu Type=h100 Count=8' >"$dir/gres.conf"
	export SLURM_CONF=$dir/slurm.conf
	slurmctld -D -f "$dir/slurm.conf" >"$dir/log/out" 2>&1 &
	pids+=($!)
	queue() { timeout 30 squeue -h -r "$@"; } # one that is not answered must not hold up the end
	count() { queue -t "$1" | wc -l || true; }
	tell() {
		while sleep 15 && [[ ! -e $dir/over ]]; do
			echo "  slurmctld, after $SECONDS s of at most $limit: $(count CF,R) of 1217 started, $(count PD) wait" >&2
		done
	}
	for _ in {1..60}; do queue >/dev/null 2>&1 && break; sleep 0.5; done
	queue >/dev/null || { tail -n 20 "$dir/log/slurmctld.log" >&2; exit 1; }
	printf '#!/bin/sh\ntrue\n' >"$dir/job.sh"
	timeout 30 sdiag -r >/dev/null
	limit=${LIMIT:-900} SECONDS=0
	began=$(date +%s.%N)
	tell & # how far it has come, until the shell that waits for Slurm says it is over
	pids+=($!)
	gangs | (cd "$dir" && timeout "$limit" xargs -P 4 -n 1 sh -c 'sbatch -Q --nodes="$1" --exclusive --gpus-per-node=8 --time=60 -o /dev/null '"$dir"'/job.sh' --) ||
		echo "slurm.sh: not all gangs were submitted in $limit s" >&2
	submitted=$(date +%s.%N)
	while ((SECONDS < limit)); do # a squeue without an answer is no empty queue
		waiting=$(queue -t PD) && [[ ! $waiting ]] && break
		sleep 1
	done
	ended=$(date +%s.%N)
	touch "$dir/over"
	awk -v b="$began" -v s="$submitted" -v e="$ended" -v n="$(count CF,R)" -v w="$(count PD)" 'BEGIN {
		printf "slurmctld: %d gangs submitted in %.1f s, %d of them started in %.1f s: %.1f gangs/s\n", n + w, s - b, n, e - b, n / (e - b) }'
	{ timeout 30 sdiag || true; } | sed -n 's/^[[:space:]]*\(Mean cycle\|Mean depth cycle\|Depth Mean\):/slurmctld, &/p'
fi

"$GO" build -o "$dir/assay" ./cmd/assay
ASSAY_BATCH="$dir/assay" ASSAY_TOPOLOGY="$dir/topology.conf" "$GO" test -run '^$' -bench DurableGangs -benchtime "${RUNS:-3}x" ./coordinator | grep -E '^Benchmark|FAIL'
