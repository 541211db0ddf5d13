#!/usr/bin/env bash
# Fuzzes one target for a while, starting from its inputs. What is found new stays in WORK_FOLDER/corpus, a crash in WORK_FOLDER/artifacts.
#
#   tools/run_fuzz_target.sh PROGRAM WORK_FOLDER [INPUT_FOLDER...] [--covers PERCENT SOURCE...]
#   XPU_FUZZ_SECONDS=600 tools/run_fuzz_target.sh ...     default: 20 seconds
#
# With --covers, all inputs are then handed over once more, and the share of the lines of the SOURCEs that they reach must be PERCENT.
set -euo pipefail

program=$1 work=$2
shift 2
seconds=${XPU_FUZZ_SECONDS:-20}
mkdir -p "$work/corpus" "$work/artifacts"
inputs=("$work/corpus")
while [[ $# -gt 0 && $1 != --covers ]]; do
  [[ ! -d $1 ]] || inputs+=("$1")
  shift
done

# An input that takes 10 s is a bug; the outer limit is for a fuzzer that does not come back at all.
limits=(-timeout=10 -rss_limit_mb=2048 -artifact_prefix="$work/artifacts/")
LLVM_PROFILE_FILE=$work/fuzzing.profraw timeout --kill-after=10 $((seconds + 100)) \
  "$program" -max_total_time="$seconds" -print_final_stats=1 "${limits[@]}" "${inputs[@]}"

[[ ${1:-} == --covers ]] || exit 0
percent=$2
shift 2
LLVM_PROFILE_FILE=$work/inputs.profraw timeout --kill-after=10 300 "$program" -runs=0 "${limits[@]}" "${inputs[@]}" >"$work/replay.log" 2>&1
llvm-profdata-19 merge -sparse "$work/inputs.profraw" -o "$work/inputs.profdata"
llvm-cov-19 report "$program" -instr-profile="$work/inputs.profdata" -show-region-summary=false -show-branch-summary=false "$@"
llvm-cov-19 export "$program" -instr-profile="$work/inputs.profdata" -summary-only "$@" >"$work/coverage.json"
python3 - "$work/coverage.json" "$percent" <<'PYTHON'
import json
import sys

lines = json.load(open(sys.argv[1], encoding="utf-8"))["data"][0]["totals"]["lines"]
print(f"{lines['covered']} of {lines['count']} lines are reached, {lines['percent']:.1f} %")
if lines["count"] == 0 or lines["percent"] < float(sys.argv[2]):
    sys.exit(f"at least {sys.argv[2]} % are required")
PYTHON
