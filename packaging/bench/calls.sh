#!/usr/bin/env bash
# How many NVML calls a full snapshot of eight GPUs makes, by the simulated library's call log, and whether any is one that
# makes the driver write to the kernel log.
#
#   packaging/bench/calls.sh
#
# BIN (bin) holds the programs. Exits 1 when a GPU is asked more than 40 calls, or one of those that make the driver log.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(realpath "${BIN:-bin}")
for f in assay-agent sim/libnvidia-ml.so.1; do
	[[ -e $bin/$f ]] || { echo "calls.sh: $bin/$f is not there (make)" >&2; exit 1; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for model in H100 B200 A100 V100; do
	printf 'model: %s\ncount: 8\n' "$model" >"$dir/$model.yaml"
	"$bin/assay-agent" sim init --dir "$dir/$model" --node gpu001 --scenario "$dir/$model.yaml" --library "$bin/sim/libnvidia-ml.so.1"
	"$bin/assay-agent" check --sim "$dir/$model" --state-dir "$dir/state" --run-dir "$dir/run" >/dev/null
	echo "$model, one full snapshot:"
	"$bin/assay-agent" sim calls --dir "$dir/$model" --most 40 | if [[ $model == H100 ]]; then cat; else tail -n 1; fi
done
