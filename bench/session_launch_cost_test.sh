#!/bin/sh
# Instructions of a launch, by callgrind: once a session has ended it costs what it cost before there was one, give or take two; what a session
# of device activities, and one of everything, adds to it. Usage: session_launch_cost_test.sh PROGRAM DEVICE_LIMIT EVERYTHING_LIMIT
set -eu
# shellcheck source=tools/instruction_gate.sh
. "$(dirname "$0")/../tools/instruction_gate.sh"
export XPU_DRIVER=host XPU_HOST_EXECUTOR=inline
unset XPU_VISIBLE_DEVICES XPU_HOST_DEVICES XPU_RECORD

without=$(per_operation 2000 12000 "$1" without)
after=$(per_operation 2000 12000 "$1" after)
device=$(per_operation 2000 12000 "$1" device)
everything=$(per_operation 2000 12000 "$1" everything)
echo "a launch takes $without instructions before there was a session, $after once one has ended"
left=$((after - without))
if [ "$left" -lt -2 ] || [ "$left" -gt 2 ]; then
  echo "a session leaves $left instructions behind"
  failures=1
fi
check "what device activities add" $((device - without)) "$2"
check "what everything adds" $((everything - without)) "$3"
exit "$failures"
