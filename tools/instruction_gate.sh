#!/bin/sh
# For scripts that hold counts of instructions, by callgrind, against limits: sourced by them, with `set -eu`. They end by `exit $failures`.
# Times say little on machines that are shared; counts are the same everywhere.

command -v valgrind >/dev/null || { echo "valgrind is not installed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# instructions [OPTION...] PROGRAM [ARGUMENT...]
instructions() {
  valgrind --tool=callgrind --callgrind-out-file="$folder/out" "$@" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
  sed -n 's/^summary: //p; s/^totals: //p' "$folder/out" | head -n 1
}
# per_operation FEW MANY [OPTION...] PROGRAM [ARGUMENT...]
# The program's last argument, which is added here, is how often it does what is counted. What happens once cancels out.
per_operation() {
  few=$1
  many=$2
  shift 2
  a=$(instructions "$@" "$few")
  b=$(instructions "$@" "$many")
  echo $(((b - a) / (many - few)))
}
# check WHAT COUNT LIMIT
check() {
  echo "$2 instructions: $1 (limit $3)"
  [ "$2" -gt 20 ] || { echo "too few to be true"; failures=1; }
  # shellcheck disable=SC2034  # for the script that sources this one
  [ "$2" -le "$3" ] || failures=1
}
