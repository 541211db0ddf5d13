#!/bin/sh
# Instructions that begin, submitted and complete cost per launch, by callgrind. Usage: launch_cost_test.sh PROGRAM LIMIT
set -eu
program=$1
limit=$2
few=2000
many=12000

command -v valgrind >/dev/null || { echo "valgrind is not installed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

instructions() {
  # Only what the table's functions execute counts; the publisher's share is the publisher's.
  valgrind --tool=callgrind --callgrind-out-file="$folder/out" --toggle-collect='xpu::trace::(anonymous namespace)::begin*' \
    --toggle-collect='xpu::trace::(anonymous namespace)::submitted*' --toggle-collect='xpu::trace::(anonymous namespace)::complete*' \
    "$program" "$1" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
  sed -n 's/^summary: //p; s/^totals: //p' "$folder/out" | head -n 1
}

a=$(instructions $few)
b=$(instructions $many)
per_launch=$(((b - a) / (many - few)))
echo "$per_launch instructions per launch (limit $limit)"
[ "$per_launch" -gt 20 ] || { echo "too few to be true: were the functions found?"; exit 1; }
[ "$per_launch" -le "$limit" ]
