#!/bin/sh
# Instructions of an allocation with its free, by callgrind: on its own, with a history, and of a snapshot per block.
# Usage: alloc_cost_test.sh PROGRAM PAIR_LIMIT HISTORY_LIMIT SNAPSHOT_LIMIT
set -eu
program=$1

command -v valgrind >/dev/null || { echo "valgrind is not installed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

instructions() {
  valgrind --tool=callgrind --callgrind-out-file="$folder/out" "$program" "$1" "$2" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
  sed -n 's/^summary: //p; s/^totals: //p' "$folder/out" | head -n 1
}
# per_operation MODE FEW MANY
per_operation() {
  a=$(instructions "$1" "$2")
  b=$(instructions "$1" "$3")
  echo $(((b - a) / ($3 - $2)))
}
failures=0
check() {
  echo "$2 instructions: $1 (limit $3)"
  [ "$2" -gt 1 ] || { echo "too few to be true"; failures=1; }
  [ "$2" -le "$3" ] || failures=1
}

pair=$(per_operation pair 2000 12000)
history=$(per_operation history 2000 12000)
snapshot=$(per_operation snapshot 10 30)
check "an allocation of 1 KiB and its free" "$pair" "$2"
check "the same with a history ($((history - pair)) more)" "$history" "$3"
check "a block of a snapshot of 10,000" $((snapshot / 10000)) "$4"
exit $failures
