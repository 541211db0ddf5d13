#!/usr/bin/env bash
# Runs a test of bridge/torch with the Python of .venv-torch, which tools/torch_venv.sh makes. Without it the test is skipped: exit code 77.
#
#   tools/torch_test.sh FILE [ARGUMENT...]
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
python=$root/.venv-torch/bin/python
if [[ ! -e $root/.venv-torch/.bridge_torch ]]; then
  echo "skipped: there is no .venv-torch with PyTorch in it (make torch-venv)"
  exit 77
fi
# From a folder of its own: next to the sources Python would find these instead of what is installed.
cd "$(dirname "$1")"
exec "$python" "$@"
