#!/usr/bin/env bash
# One placement of Kueue's topology-aware scheduling beside one of ours, on fleets of 100, 500 and 2,500 nodes, in the same run.
#
#   packaging/bench/kueue.sh [VERSION]      of sigs.k8s.io/kueue (v0.17.0)
#
# Kueue comes by the Go module proxy, into a module of its own that ends with the run: nothing here depends on it. Its package
# is built as it is published, with one benchmark in it instead of its own tests. The first build takes minutes, and
# half a gigabyte of build cache.
set -euo pipefail
cd "$(dirname "$0")/../.."
GO=${GO:-go} version=${1:-v0.17.0} here=$PWD
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
"$GO" mod init kueuebench 2>/dev/null
printf 'package kueuebench\n\nimport _ "sigs.k8s.io/kueue/pkg/cache/scheduler"\n' >use.go
if ! "$GO" get "sigs.k8s.io/kueue@$version" >log 2>&1 || ! "$GO" get sigs.k8s.io/kueue/pkg/cache/scheduler >>log 2>&1; then
	tail -n 3 log >&2
	echo "kueue.sh: sigs.k8s.io/kueue $version is not to be had from the module proxy" >&2
	exit 1
fi
cp -r "$("$GO" list -m -f '{{.Dir}}' sigs.k8s.io/kueue)" kueue
chmod -R u+w kueue
rm kueue/pkg/cache/scheduler/*_test.go
cp "$here/packaging/bench/kueue/assignment_test.go.txt" kueue/pkg/cache/scheduler/assignment_test.go
"$GO" mod edit -replace=sigs.k8s.io/kueue=./kueue
echo "== Kueue $version"
"$GO" test -mod=mod -run '^$' -bench Assignment sigs.k8s.io/kueue/pkg/cache/scheduler | grep -E '^Benchmark|FAIL|panic'
cd "$here"
echo "== assay"
"$GO" test -run '^$' -bench Small -benchmem ./scheduler | grep -E '^Benchmark|FAIL'
