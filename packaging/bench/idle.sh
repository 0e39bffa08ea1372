#!/usr/bin/env bash
# The agent at rest, children included: CPU time, memory, and driver calls, with 8 simulated GPUs at the default interval,
# enrolled with a control plane that runs beside it.
#
#   packaging/bench/idle.sh              five minutes
#   packaging/bench/idle.sh SECONDS      as long as that; CPU time is counted in ticks of 10 ms
#
# BIN (bin) holds the programs. To hold: under 0.3 % of one core and 40 MiB PSS, at most 40 NVML calls per GPU and cycle.
# Exit 1 if one does not hold.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-300}
bin=$(realpath "${BIN:-bin}")
for f in assay assayd assay-agent sim/libnvidia-ml.so.1; do
	[[ -e $bin/$f ]] || { echo "idle.sh: $bin/$f is not there (make)" >&2; exit 1; }
done

dir=$(mktemp -d)
pids=()
cleanup() {
	for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
	for p in "${pids[@]}"; do wait "$p" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap cleanup EXIT
fail() { echo "idle.sh: $*" >&2; tail -n 5 "$dir"/*.log >&2; exit 1; }
eventually() { # what, command: until it succeeds, 30 s at most
	local what=$1
	shift
	for _ in {1..300}; do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
	fail "not within 30 s: $what"
}

"$bin/assay-agent" sim init --dir "$dir/hw" --node gpu001 --library "$bin/sim/libnvidia-ml.so.1"
port=$((17000 + RANDOM % 12000))
"$bin/assayd" serve --state-dir "$dir/assayd" --listen "127.0.0.1:$port" --advertise "https://127.0.0.1:$port" \
	--socket "$dir/assayd.sock" --workload-manager none 2>"$dir/assayd.log" &
pids+=($!)
cli() { "$bin/assay" --socket "$dir/assayd.sock" "$@"; }
eventually "assayd answers" cli fleet
token=$(cli node enroll gpu001 --adopt -o json | sed -n 's/.*"token": *"\([^"]*\)".*/\1/p')
"$bin/assay-agent" enroll --token "$token" --state-dir "$dir/state" >/dev/null
"$bin/assay-agent" run --node gpu001 --sim "$dir/hw" --run-dir "$dir/run" --state-dir "$dir/state" 2>"$dir/agent.log" &
agent=$!
pids+=("$agent")
connected() { grep -q 'connected to the control plane' "$dir/agent.log"; }
eventually "the agent is connected" connected

family() { # the agent and all that descends from it
	local todo=("$agent") p
	while ((${#todo[@]})); do
		p=${todo[0]} todo=("${todo[@]:1}")
		echo "$p"
		mapfile -t -O "${#todo[@]}" todo < <(cat /proc/"$p"/task/*/children 2>/dev/null | tr ' ' '\n' | sed '/^$/d')
	done
}
ticks() { # of all that live, and of the children they have waited for
	local p sum=0 t
	for p in $(family); do
		t=$(sed 's/.*) //' "/proc/$p/stat" | awk '{print $12 + $13 + $14 + $15}')
		sum=$((sum + t))
	done
	echo "$sum"
}
pss() { # KiB, of one process
	awk '/^Pss:/ {print $2}' "/proc/$1/smaps_rollup"
}
calls() { "$bin/assay-agent" sim show --dir "$dir/hw" | awk '/"calls": *{/ {on=1; next} on && /}/ {exit} on {gsub(/[^0-9]/, "", $2); n += $2} END {print n+0}'; }

sleep 10 # what a start costs is not rest
hz=$(getconf CLK_TCK)
t0=$(ticks) c0=$(calls) s0=$(date +%s%N) most=0
for ((left = seconds; left > 0; left -= 10)); do
	sleep $((left < 10 ? left : 10))
	now=0
	for p in $(family); do now=$((now + $(pss "$p"))); done
	((now > most)) && most=$now
done
t1=$(ticks) c1=$(calls) s1=$(date +%s%N)
kill -0 "$agent" || fail "the agent has ended"

printf '%-34s %10s\n' process 'PSS MiB'
for p in $(family); do
	printf '%-34s %10.1f\n' "$(tr '\0' ' ' <"/proc/$p/cmdline" | awk '{n=split($1, a, "/"); print a[n], $2, ($2 == "probe" ? $3 : "")}')" "$(awk "BEGIN {print $(pss "$p")/1024}")"
done
awk -v ticks=$((t1 - t0)) -v hz="$hz" -v ns=$((s1 - s0)) -v kib="$most" -v calls=$((c1 - c0)) 'BEGIN {
	s = ns/1e9; cpu = 100*ticks/hz/s; mib = kib/1024
	cycles = int(s/30 + 0.5); per = cycles ? calls/8/cycles : 0
	printf "over %.0f s: %.2f %% of one core (under 0.3), at most %.1f MiB PSS (under 40), %.1f NVML calls per GPU and cycle (at most 40)\n", s, cpu, mib, per
	exit !(cpu < 0.3 && mib < 40 && per <= 40)
}'
