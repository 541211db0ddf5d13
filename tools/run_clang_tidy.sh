#!/usr/bin/env bash
# clang-tidy over our sources and the headers that they include; any complaint fails. Tests are compiled with every warning but not tidied.
#
#   tools/run_clang_tidy.sh [PATTERN]      all sources, or those whose path below src/ matches the regular expression
#
# Needs no build: build/clang_tidy is only configured, with the flags of clang-tidy's own compiler and one command for each source.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/clang_tidy pattern=${1:-}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

cmake --preset clang -B "$build" -DCMAKE_UNITY_BUILD=OFF >"$log"
# Without fmt's function bodies, which header-only use brings into every source: a third of the time.
status=0
run-clang-tidy-19 -quiet -p "$build" -j "$(nproc)" -extra-arg=-UFMT_HEADER_ONLY "^$root/src/(?=$pattern)(?!.*_(test|bench|fuzz)\.cpp).*\.cpp$" >"$log" 2>&1 || status=$?
# Without the command lines and the counts of what was suppressed in foreign headers.
grep -vE '^(\[ *[0-9]+/[0-9]+\].*|clang-tidy-19 .*|[0-9]+ warnings? (and [0-9]+ errors? )?generated\.|Suppressed .*|Use -header-filter.*|)$' "$log" || true
if [[ $status -eq 0 ]] && ! grep -qE ' (warning|error): ' "$log"; then
  echo "clang-tidy: ok"
else
  exit 1
fi
