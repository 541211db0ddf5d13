#!/usr/bin/env bash
# Fuzzes one target for a while, starting from its corpus. What is found new stays in WORK_FOLDER/corpus, a crash in WORK_FOLDER/artifacts.
#
#   tools/run_fuzz_target.sh PROGRAM WORK_FOLDER [SEED_FOLDER...]
#   XPU_FUZZ_SECONDS=600 tools/run_fuzz_target.sh ...     default: 20 seconds
set -euo pipefail

program=$1 work=$2
shift 2
seconds=${XPU_FUZZ_SECONDS:-20}
mkdir -p "$work/corpus" "$work/artifacts"
seeds=()
for folder in "$@"; do
  [[ ! -d $folder ]] || seeds+=("$folder")
done

# An input that takes 10 s is a bug; the outer limit is for a fuzzer that does not come back at all.
exec timeout --kill-after=10 $((seconds + 100)) "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
  -artifact_prefix="$work/artifacts/" "$work/corpus" ${seeds[@]+"${seeds[@]}"}
