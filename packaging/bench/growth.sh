#!/usr/bin/env bash
# Processor time against the number of nodes (1,000 to 1,000,000) and of jobs pending (100 to 100,000), as tables, and as charts
# where DIR is given.
#
#   packaging/bench/growth.sh [DIR]         about six minutes on an idle machine
set -euo pipefail
cd "$(dirname "$0")/../.."
GO=${GO:-go} out=$(mktemp)
trap 'rm -f "$out"' EXIT
ASSAY_GROWTH=1 "$GO" test -run '^$' -bench Growth -timeout 60m ./scheduler ./scheduler/cycle | tee "$out" | grep --line-buffered '^Benchmark' >&2
"$GO" run ./packaging/bench/growth "$@" <"$out"
