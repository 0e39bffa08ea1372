#!/usr/bin/env bash
# The prolog hook, whole process, against /bin/true and an empty static Go program in the same run.
#
#   packaging/bench/hook.sh            an answering process that takes no time of its own stands for the agent
#   packaging/bench/hook.sh DIR        the agent that listens on DIR/agent.sock, as it is
#
# RUNS (2000) sets how often each is started. To hold: at most 2.5 times /bin/true and 1.5 times the empty program,
# p99 under 10 ms. Exit 1 if one does not hold.
set -euo pipefail
cd "$(dirname "$0")/../.."
GO=${GO:-go}
runs=${RUNS:-2000}
command -v hyperfine >/dev/null || { echo "hook.sh: hyperfine is not installed (make deps)" >&2; exit 1; }

dir=$(mktemp -d)
answer=
cleanup() {
	exec 9>&- || true
	[[ -z $answer ]] || wait "$answer" || true
	rm -rf "$dir"
}
trap cleanup EXIT

run_dir=${1:-$dir}
export CGO_ENABLED=0
"$GO" build -trimpath -buildvcs=false -ldflags '-s -w' -o "$dir/emptygo" ./packaging/bench/emptygo
"$GO" build -trimpath -buildvcs=false -ldflags "-s -w -X main.runDir=$run_dir -X main.etcDir=$dir" -o "$dir/prolog" ./cmd/assay-hook
if [[ $run_dir == "$dir" ]]; then
	"$GO" build -trimpath -buildvcs=false -o "$dir/answer" ./packaging/bench/answer
	mkfifo "$dir/stop"
	"$dir/answer" "$dir/agent.sock" <"$dir/stop" &
	answer=$!
	exec 9>"$dir/stop"
fi
for _ in {1..100}; do [[ -S $run_dir/agent.sock ]] && break; sleep 0.05; done
[[ -S $run_dir/agent.sock ]] || { echo "hook.sh: no agent on $run_dir/agent.sock" >&2; exit 1; }

# The variables a prolog of a GPU job has.
export SLURM_JOB_ID=4711 SLURM_JOB_UID=1000 SLURM_JOB_USER=alice SLURM_JOB_PARTITION=train SLURM_JOB_NUM_NODES=64 \
	SLURM_JOB_NODELIST='gpu[001-064]' SLURM_NODELIST='gpu[001-064]' SLURM_JOB_GPUS=0,1,2,3,4,5,6,7 \
	CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 SLURM_RESTART_COUNT=0 SLURM_SCRIPT_CONTEXT=prolog_slurmd

out=$("$dir/prolog" 2>&1) || { echo "hook.sh: the agent refuses: $out" >&2; exit 1; }
[[ -z $out ]] || { echo "hook.sh: not the fast path: $out" >&2; exit 1; }

# In rounds of 50, so that what else the machine does meets all three alike.
round=50
for ((i = 0; i < (runs + round - 1) / round; i++)); do
	hyperfine -N --warmup 5 --runs "$round" --export-json "$dir/times.$i.json" /bin/true "$dir/emptygo" "$dir/prolog" 2>/dev/null >/dev/null
done
# hyperfine writes one time a line; awk sorts nothing, so sort(1) does.
times() { # which command: its times in ms, ascending
	awk -v want="$1" 'FNR==1 {n=0; on=0} /"times":/ {n++; on=1; next} /\]/ {on=0} on && n==want {gsub(/[ ,]/, ""); print $0*1000}' "$dir"/times.*.json | sort -n
}
quantile() { times "$1" | awk -v q="$2" '{t[NR]=$1} END {i=int(NR*q); print t[i<1?1:i]}'; }
row() { printf '%-24s %8.3f %8.3f %8.3f\n' "$1" "$(quantile "$2" 0.5)" "$(quantile "$2" 0.95)" "$(quantile "$2" 0.99)"; }
printf '%-24s %8s %8s %8s   (%s runs each)\n' 'ms' p50 p95 p99 "$runs"
row /bin/true 1
row 'empty static Go program' 2
row 'assay-hook prolog' 3
awk -v t="$(quantile 1 0.5)" -v e="$(quantile 2 0.5)" -v h="$(quantile 3 0.5)" -v p="$(quantile 3 0.99)" 'BEGIN {
	printf "%.2f times /bin/true (at most 2.5), %.2f times the empty program (at most 1.5), p99 %.2f ms (under 10)\n", h/t, h/e, p
	exit !(h <= 2.5*t && h <= 1.5*e && p < 10)
}'
