#!/usr/bin/env bash
# Everything that is checked before a change lands, in named stages; each can be run alone.
#
#   tools/run_tests.sh               every stage
#   tools/run_tests.sh dev asan      these stages
#   tools/run_tests.sh --list        the stages with their budgets in seconds
#
# One line a stage while it runs, the whole output in build/logs/<stage>.log (its end is shown when a stage fails), a summary at the end.
# The last line counts the tests that CTest ran in all stages; a stage without tests of its own counts as one, and so does a stage that
# was skipped or that failed outside a test. The exit code is 0 when nothing failed.
set -uo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 2
logs=$root/build/logs
jobs=$(nproc)
# A recording that surrounds this script must not record the tests.
unset XPU_RECORD OPENCL_LAYERS
# A compiler cache, where there is one, serves every clone of the project alike.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

# Seconds on 2 cores without a compiler cache. CONTRIBUTING.md shows them in minutes; tools/check_repository.py compares the two.
readonly all_stages=(packages static dev asan tsan clang release end_to_end readers python torch fuzz)
declare -rA budget_s=([packages]=60 [static]=120 [dev]=180 [asan]=540 [tsan]=480 [clang]=660 [release]=420 [end_to_end]=300 [readers]=120 [python]=120 [torch]=300
  [fuzz]=300)

readonly build_packages="cmake ninja-build pkg-config libcli11-dev libfmt-dev nlohmann-json3-dev opencl-headers zlib1g-dev"
readonly test_packages="libgmock-dev libgtest-dev librapidcheck-dev ocl-icd-opencl-dev pocl-opencl-icd python3"
declare -rA stage_packages=(
  [packages]=""
  [static]="python3 clang-format-19 shellcheck codespell g++ $build_packages"
  [dev]="g++ $build_packages $test_packages"
  [asan]="g++ $build_packages $test_packages"
  [tsan]="g++ $build_packages $test_packages"
  [clang]="clang-19 clang-tidy-19 $build_packages $test_packages"
  [release]="g++ $build_packages $test_packages valgrind"
  [end_to_end]="g++ $build_packages $test_packages clpeak hashcat libclblast-dev python3-pyopencl valgrind"
  [readers]="g++ $build_packages $test_packages chromium clpeak nodejs npm python3-pip python3-pyopencl python3-venv"
  [python]="g++ $build_packages $test_packages clpeak pybind11-dev python3-dev python3-pip python3-venv"
  [torch]="g++ $build_packages $test_packages pybind11-dev python3-dev python3-pip python3-venv"
  [fuzz]="clang-19 libclang-rt-19-dev llvm-19 $build_packages libgtest-dev libgmock-dev"
)

build() {
  cmake --preset "$1" && cmake --build --preset "$1" --parallel "$jobs"
}

# ctest_preset STAGE PRESET [arguments]: a stage may run several, each leaves its count.
ctest_preset() {
  local stage=$1 preset=$2
  shift 2
  ctest --preset "$preset" --output-junit "$logs/$stage.$preset.junit.xml" "$@"
}

stage_packages() {
  tools/install_packages.sh
}

stage_static() {
  local status=0
  tools/check_layers.py --self-test && tools/check_layers.py || status=1
  tools/check_symbols.sh --self-test || status=1
  tools/check_repository.py --self-test && tools/check_repository.py || status=1
  tools/check_headers.py || status=1
  return $status
}

stage_dev() {
  build dev && ctest_preset dev dev --parallel "$jobs"
}

stage_asan() {
  build asan && ctest_preset asan asan --parallel "$jobs"
}

stage_tsan() {
  build tsan && ctest_preset tsan tsan --parallel "$jobs"
}

stage_clang() {
  build clang && ctest_preset clang clang --parallel "$jobs" && tools/run_clang_tidy.sh
}

# The gates count instructions and bytes or compare two programs on the same core: one at a time.
stage_release() {
  build release && tools/check_symbols.sh build/release && ctest_preset release release --parallel "$jobs" && ctest_preset release gate
}

# The programs are timed against their own untraced run: one at a time.
stage_end_to_end() {
  build release && ctest_preset end_to_end end-to-end
}

# Readers that are not there are fetched once, below build/readers.
stage_readers() {
  build release && ctest_preset readers readers
}

# The package for Python, and the wheel that a fresh environment gets.
stage_python() {
  build python && ctest_preset python python --parallel "$jobs"
}

# Stock PyTorch on what is here; it is fetched once, into .venv-torch. Where it cannot be had (75) the tests say so, and are skipped.
stage_torch() {
  local status=0
  build python && tools/torch_venv.sh || status=$?
  [[ $status -eq 0 || $status -eq 75 ]] && ctest_preset torch torch --parallel "$jobs"
}

stage_fuzz() {
  build fuzz && ctest_preset fuzz fuzz --parallel "$jobs"
}

passed=0 failed=0 skipped=0
table=()

report_line() {
  local line
  line=$(printf '%-11s %-8s %5s s  %s' "$1" "$2" "$3" "$4")
  echo "${line%"${line##*[! ]}"}"
  table+=("${line%"${line##*[! ]}"}")
}

# Sets what CTest counted in the stage, and why tests that say so ("skipped: ...") were skipped.
count_tests() {
  local file header tests failures skips
  stage_tests=0 stage_failures=0 stage_skips=0 skip_reasons=""
  for file in "$logs/$1".*.junit.xml; do
    [[ -e $file ]] || continue
    header=$(tr '\n\t' '  ' <"$file" | grep -o '<testsuite [^>]*>' | head -n 1)
    tests=$(sed -n 's/.* tests="\([0-9]*\)".*/\1/p' <<<"$header")
    failures=$(sed -n 's/.* failures="\([0-9]*\)".*/\1/p' <<<"$header")
    skips=$(sed -n 's/.* skipped="\([0-9]*\)".*/\1/p' <<<"$header")
    stage_tests=$((stage_tests + ${tests:-0}))
    stage_failures=$((stage_failures + ${failures:-0}))
    stage_skips=$((stage_skips + ${skips:-0}))
    skip_reasons+=$(sed -n 's/^\(.*>\)\{0,1\}skipped: \([^<]*\).*/\2/p' "$file" | sort -u | sed 's/^/; /' | tr -d '\n')
  done
  skip_reasons=${skip_reasons#; }
}

run_stage() {
  local stage=$1 missing begin status seconds note=""
  rm -f "$logs/$stage".*
  if [[ -n ${stage_packages[$stage]} ]]; then
    # shellcheck disable=SC2086  # a list of names
    missing=$(tools/install_packages.sh --missing ${stage_packages[$stage]} | tr '\n' ' ')
    if [[ -n $missing ]]; then
      report_line "$stage" skipped 0 "packages are missing: ${missing% }"
      skipped=$((skipped + 1))
      return
    fi
  fi

  begin=$SECONDS
  if [[ -t 1 ]]; then printf '%-11s ...\r' "$stage"; fi
  "stage_$stage" >"$logs/$stage.log" 2>&1 </dev/null
  status=$?
  seconds=$((SECONDS - begin))

  count_tests "$stage"
  if [[ $stage_tests -eq 0 ]]; then
    [[ $status -ne 0 ]] || passed=$((passed + 1))
  else
    passed=$((passed + stage_tests - stage_failures - stage_skips))
    skipped=$((skipped + stage_skips))
    note="$stage_tests tests"
    [[ $stage_skips -eq 0 ]] || note+=", $stage_skips skipped${skip_reasons:+ ($skip_reasons)}"
  fi
  failed=$((failed + stage_failures))
  if [[ $status -ne 0 && $stage_failures -eq 0 ]]; then failed=$((failed + 1)); fi
  if [[ $seconds -gt ${budget_s[$stage]} ]]; then note+="${note:+, }over its budget of ${budget_s[$stage]} s"; fi

  if [[ $status -eq 0 ]]; then
    report_line "$stage" ok "$seconds" "$note"
  else
    report_line "$stage" FAILED "$seconds" "${note:+$note, }see build/logs/$stage.log"
    echo "--- the end of build/logs/$stage.log"
    tail -n 60 "$logs/$stage.log"
    echo "---"
  fi
  return $status
}

main() {
  local stages=() stage
  if [[ ${1:-} == --list ]]; then
    for stage in "${all_stages[@]}"; do echo "$stage ${budget_s[$stage]}"; done
    return 0
  fi
  for stage in "$@"; do
    if [[ " ${all_stages[*]} " != *" $stage "* ]]; then
      echo "There is no stage '$stage'; the stages are: ${all_stages[*]}" >&2
      return 2
    fi
  done
  stages=("$@")
  [[ $# -gt 0 ]] || stages=("${all_stages[@]}")

  mkdir -p "$logs"
  for stage in "${stages[@]}"; do
    if ! run_stage "$stage" && [[ $stage == packages ]]; then break; fi
  done

  echo
  echo "stage       result    time"
  printf '%s\n' "${table[@]}"
  echo
  echo "$passed passed, $failed failed, $skipped skipped"
  [[ $failed -eq 0 ]]
}

main "$@"
