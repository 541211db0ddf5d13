#!/bin/sh
# Instructions of one launch, of one launch with a subscriber, and of one event recorded and queried, on the host driver with the executor
# `inline`, by callgrind. Usage: launch_cost_test.sh PROGRAM LAUNCH_LIMIT SUBSCRIBED_LIMIT EVENT_LIMIT
set -eu
# shellcheck source=tools/instruction_gate.sh
. "$(dirname "$0")/../../tools/instruction_gate.sh"
export XPU_DRIVER=host XPU_HOST_EXECUTOR=inline
unset XPU_VISIBLE_DEVICES XPU_HOST_DEVICES XPU_RECORD

launch=$(per_operation 2000 12000 "$1" launch)
subscribed=$(per_operation 2000 12000 "$1" subscribed)
event=$(per_operation 2000 12000 "$1" event)
check "a launch with 3 arguments and one work-group" "$launch" "$2"
check "the same with a subscriber ($((subscribed - launch)) more)" "$subscribed" "$3"
check "an event, recorded and queried" "$event" "$4"
exit "$failures"
