#!/bin/sh
# Instructions of writing a range, a launch and a copy with the sinks, by callgrind, beside those of the floors, which write the same bytes.
# Usage: sink_cost_test.sh PROGRAM MOST_FLOORS
set -eu
# shellcheck source=tools/instruction_gate.sh
. "$(dirname "$0")/../tools/instruction_gate.sh"

for step in range launch copy; do
  none=$(per_operation 2000 12000 "$1" none $step)
  for format in json perfetto; do
    floor=$(($(per_operation 2000 12000 "$1" ${format}_floor $step) - none))
    sink=$(($(per_operation 2000 12000 "$1" $format $step) - none))
    [ "$floor" -gt 20 ] || { echo "a floor of $floor is too low to be true"; failures=1; }
    check "a $step as $format ($((sink * 100 / floor)) % of the floor)" "$sink" $(($2 * floor))
  done
done
exit "$failures"
