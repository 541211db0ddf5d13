#!/bin/sh
# Instructions of one launch, of one launch with a subscriber, and of one event recorded and queried, on the host driver with the executor
# `inline`, by callgrind. Usage: launch_cost_test.sh PROGRAM LAUNCH_LIMIT SUBSCRIBED_LIMIT EVENT_LIMIT
set -eu
program=$1
few=2000
many=12000

command -v valgrind >/dev/null || { echo "valgrind is not installed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XPU_DRIVER=host XPU_HOST_EXECUTOR=inline
unset XPU_VISIBLE_DEVICES XPU_HOST_DEVICES XPU_RECORD

instructions() {
  valgrind --tool=callgrind --callgrind-out-file="$folder/out" "$program" "$1" "$2" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
  sed -n 's/^summary: //p; s/^totals: //p' "$folder/out" | head -n 1
}
per_operation() {
  a=$(instructions "$1" $few)
  b=$(instructions "$1" $many)
  echo $(((b - a) / (many - few)))
}
failures=0
check() {
  echo "$2 instructions: $1 (limit $3)"
  [ "$2" -gt 20 ] || { echo "too few to be true"; failures=1; }
  [ "$2" -le "$3" ] || failures=1
}

launch=$(per_operation launch)
subscribed=$(per_operation subscribed)
event=$(per_operation event)
check "a launch with 3 arguments and one work-group" "$launch" "$2"
check "the same with a subscriber ($((subscribed - launch)) more)" "$subscribed" "$3"
check "an event, recorded and queried" "$event" "$4"
exit $failures
