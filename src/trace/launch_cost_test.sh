#!/bin/sh
# Instructions that begin, submitted and complete cost per launch, by callgrind. Usage: launch_cost_test.sh PROGRAM LIMIT
set -eu
# shellcheck source=tools/instruction_gate.sh
. "$(dirname "$0")/../../tools/instruction_gate.sh"

# Only what the table's functions execute counts; the publisher's share is the publisher's.
launch=$(per_operation 2000 12000 --toggle-collect='xpu::trace::(anonymous namespace)::begin*' \
  --toggle-collect='xpu::trace::(anonymous namespace)::submitted*' --toggle-collect='xpu::trace::(anonymous namespace)::complete*' "$1")
check "a launch" "$launch" "$2"
exit "$failures"
