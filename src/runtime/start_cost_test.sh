#!/bin/sh
# System calls of the initialisation and of the first use of a stream, on the host driver. Usage: start_cost_test.sh PROGRAM INITIALISE_LIMIT STREAM_LIMIT
set -eu
program=$1

command -v valgrind >/dev/null || { echo "valgrind is not installed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XPU_DRIVER=host
unset XPU_VISIBLE_DEVICES XPU_HOST_DEVICES XPU_HOST_EXECUTOR XPU_RECORD

system_calls() {
  valgrind --tool=none --trace-syscalls=yes --log-file="$folder/log" "$program" "$1" >"$folder/out" 2>&1 || { cat "$folder/log" >&2; exit 1; }
  grep -c '^SYSCALL\[' "$folder/log"
}
nothing=$(system_calls nothing)
initialised=$(system_calls initialize)
stream=$(system_calls stream)
[ "$nothing" -gt 20 ] || { echo "only $nothing system calls in all: were they seen?"; exit 1; }
failures=0
check() {
  echo "$1: $2 system calls (limit $3)"
  [ "$2" -le "$3" ] || failures=1
}
check "initialisation" $((initialised - nothing)) "$2"
check "first use of a stream" $((stream - initialised)) "$3"
"$program" stream
exit $failures
