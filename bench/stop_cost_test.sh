#!/bin/sh
# Instructions of a session's stop, by callgrind: behind ten times the operations they must not be more than the ratio allows.
# Usage: stop_cost_test.sh PROGRAM PERCENT
set -eu
# shellcheck source=tools/instruction_gate.sh
. "$(dirname "$0")/../tools/instruction_gate.sh"

few=$(instructions --toggle-collect='xpu::profiler::Session::stop()' "$1" 100000)
many=$(instructions --toggle-collect='xpu::profiler::Session::stop()' "$1" 1000000)
echo "a stop behind 100,000 operations: $few instructions; behind 1,000,000: $many"
[ "$few" -ge 100 ] || { echo "too few to be true"; exit 1; }
check "a stop behind ten times the operations ($((many * 100 / few)) %)" "$many" $((few * $2 / 100))
exit "$failures"
