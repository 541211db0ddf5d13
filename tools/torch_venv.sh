#!/usr/bin/env bash
# Makes .venv-torch: PyTorch's stock wheel for CPUs, libxpu and, where it is there, bridge/torch, each built from this tree and installed as its
# users have it. Does what has changed, and nothing, quickly, when nothing has.
#
#   tools/torch_venv.sh       with the interpreter XPU_PYTHON, by default python3
#
# Versions and hashes: bridge/torch/requirements.txt. Where the packages cannot be had the exit code is 75.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
me=torch_venv
log=$root/build/logs/torch_venv.log
# shellcheck source=tools/python_environment.sh
source "$root/tools/python_environment.sh"
mkdir -p "$root/build/logs" "$root/build/wheels"
exec 8>"$root/build/wheels/.torch_lock"
flock 8
: >"$log"
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

environment=$root/.venv-torch
use_environment "$environment" "$root/bridge/torch/requirements.txt" "$root/tests/python/requirements.txt"

# install_wheel NAME KEY FOLDER
install_wheel() {
  logged "installing $1" "$environment/bin/python" -m pip --disable-pip-version-check install --quiet --no-deps --no-index --force-reinstall "$3"/*.whl
  echo "$2" >"$environment/.$1"
}

seconds=$SECONDS
"$root/tools/build_wheel.sh" >>"$log" || {
  status=$?
  echo "$me: libxpu was not built, see $root/build/logs/build_wheel.log" >&2
  exit $status
}
libxpu_key=$(cat "$root/build/wheels/libxpu/.complete")
if [[ -e $environment/.libxpu && $(cat "$environment/.libxpu") == "$libxpu_key" ]]; then
  echo "$me: libxpu as before"
else
  install_wheel libxpu "$libxpu_key" "$root/build/wheels/libxpu"
  echo "$me: libxpu installed, $((SECONDS - seconds)) s"
fi

if [[ -e $root/bridge/torch/pyproject.toml ]]; then
  bridge_key=$(printf '%s\n' "$libxpu_key" "$(key_of_files bridge/torch)" | sha256sum)
  if [[ -e $environment/.bridge_torch && $(cat "$environment/.bridge_torch") == "$bridge_key" ]]; then
    echo "$me: bridge/torch as before"
  else
    seconds=$SECONDS
    CMAKE_PREFIX_PATH=$("$environment/bin/python" -c 'import xpu; print(xpu.cmake_prefix())')
    export CMAKE_PREFIX_PATH
    build_wheel "$environment" "$root/bridge/torch" "$root/build/wheel_bridge_torch" "$root/build/wheels/bridge_torch"
    install_wheel bridge_torch "$bridge_key" "$root/build/wheels/bridge_torch"
    echo "$me: bridge/torch installed, $((SECONDS - seconds)) s"
  fi
fi
