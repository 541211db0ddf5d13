#!/bin/sh
# Instructions of an allocation with its free, by callgrind: on its own, with a history, and of pinned memory; of a snapshot per block; of
# writing a history per entry. And how much memory writing a million entries takes beside the history.
# Usage: alloc_cost_test.sh PROGRAM PAIR_LIMIT HISTORY_LIMIT HOST_PAIR_LIMIT SNAPSHOT_LIMIT WRITE_LIMIT WRITE_KIB_LIMIT
set -eu
# shellcheck source=tools/instruction_gate.sh
. "$(dirname "$0")/../tools/instruction_gate.sh"
export TMPDIR="$folder"

pair=$(per_operation 2000 12000 "$1" pair)
history=$(per_operation 2000 12000 "$1" history)
host_pair=$(per_operation 2000 12000 "$1" host_pair)
snapshot=$(per_operation 10 30 "$1" snapshot)
write=$(per_operation 3000 12000 "$1" write_history)
check "an allocation of 1 KiB and its free" "$pair" "$2"
check "the same with a history ($((history - pair)) more)" "$history" "$3"
check "an allocation of 1 KiB of pinned memory and its free" "$host_pair" "$4"
check "a block of a snapshot of 10,000" $((snapshot / 10000)) "$5"
check "an entry of a history that is written" "$write" "$6"

"$1" write_history 1000000 | tee "$folder/written"
written_kib=$(sed -n 's/.*(\([0-9]*\))$/\1/p' "$folder/written")
echo "$written_kib KiB more memory while a million entries are written (limit $7)"
[ "$written_kib" -le "$7" ] || failures=1
exit "$failures"
