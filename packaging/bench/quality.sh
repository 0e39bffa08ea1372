#!/usr/bin/env bash
# The simulator's policies beside each other, over SEEDS (10) generated traces of each cluster: of every figure the mean of the seeds
# and, in brackets, the least and the most.
#
#   packaging/bench/quality.sh [PROFILE...]       seren kalos helios
#
# JOBS (2000) on NODES (64) of eight GPUs at LOAD (0.95). About five minutes on an idle machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
GO=${GO:-go} seeds=${SEEDS:-10} jobs=${JOBS:-2000} nodes=${NODES:-64} load=${LOAD:-0.95}
(($#)) || set -- seren kalos helios
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$GO" build -o "$dir/assay" ./cmd/assay
echo "| trace | policy | wait, mean, min | wait, p95, min | bounded slowdown | GPU time in use, % | idle while a job waits, % | leaves over fewest, empty fleet | leaves over fewest then free |"
echo "|---|---|---|---|---|---|---|---|---|"
for profile; do
	: >"$dir/all"
	for seed in $(seq "$seeds"); do
		"$dir/assay" sim generate --profile "$profile" --jobs "$jobs" --nodes "$nodes" --load "$load" --seed "$seed" >"$dir/trace.csv"
		"$dir/assay" sim "$dir/trace.csv" --nodes "$nodes" --policy backfill,easy,fifo --csv "$dir/figures.csv" >/dev/null
		grep ',all,' "$dir/figures.csv" >>"$dir/all"
		echo "  $profile: $seed of $seeds" >&2
	done
	awk -F, -v profile="$profile" '
		function note(k, v) { s[k] += v; if (!(k in lo) || v < lo[k]) lo[k] = v; if (!(k in hi) || v > hi[k]) hi[k] = v }
		function tell(k, form) { return sprintf(form " (" form " to " form ")", s[k] / n[p], lo[k], hi[k]) }
		{
			n[$1]++
			note($1 1, $6 / 60); note($1 2, $7 / 60); note($1 3, $9); note($1 4, $10 * 100); note($1 5, $11 * 100); note($1 6, $16); note($1 7, $17)
		}
		END {
			split("backfill easy fifo", names, " ")
			for (i = 1; i <= 3; i++) {
				p = names[i]
				print "| " profile " | " p " | " tell(p 1, "%.1f") " | " tell(p 2, "%.1f") " | " tell(p 3, "%.2f") " | " tell(p 4, "%.1f") " | " tell(p 5, "%.1f") " | " tell(p 6, "%.3f") " | " tell(p 7, "%.3f") " |"
			}
		}' "$dir/all"
done
