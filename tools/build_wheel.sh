#!/usr/bin/env bash
# Builds the wheel libxpu into build/wheels/libxpu; its path is the last line that is printed. Does nothing, quickly, when nothing has changed.
#
#   tools/build_wheel.sh      with the interpreter XPU_PYTHON, by default python3
#
# What it needs of Python (tests/python/requirements.txt) is fetched once, into build/wheel_environment. Where that cannot be had the exit code is 75.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
me=build_wheel
log=$root/build/logs/build_wheel.log
# shellcheck source=tools/python_environment.sh
source "$root/tools/python_environment.sh"
mkdir -p "$root/build/logs" "$root/build/wheels"
# Two at once would compile in the same folder.
exec 9>"$root/build/wheels/.lock"
flock 9
: >"$log"
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

environment=$root/build/wheel_environment
out=$root/build/wheels/libxpu
use_environment "$environment" "$root/tests/python/requirements.txt"
key=$(printf '%s\n' "$(cat "$environment/.complete")" "$(key_of_files CMakeLists.txt LICENSE README.md cmake include pyproject.toml src)" | sha256sum)
if [[ -e $out/.complete && $(cat "$out/.complete") == "$key" ]]; then
  echo "$me: nothing has changed"
else
  seconds=$SECONDS
  build_wheel "$environment" "$root" "$root/build/wheel" "$out"
  echo "$key" >"$out/.complete"
  echo "$me: built, $((SECONDS - seconds)) s"
fi
echo "$out"/*.whl
