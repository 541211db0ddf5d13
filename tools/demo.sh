#!/usr/bin/env bash
# The demo: install what is needed, build, record a real OpenCL program that knows nothing of us, show what it did.
set -euo pipefail
cd "$(dirname "$0")/.."

program=(clpeak --kernel-latency --transfer-bandwidth)
build=build/demo

say() { printf '\n== %s\n' "$*"; }

say "packages"
tools/install_packages.sh

say "build ($build)"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DXPU_BUILD_TESTS=OFF -DXPU_BUILD_BENCH=OFF \
  "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG -Wno-array-bounds -Wno-stringop-overflow" >/dev/null
cmake --build "$build"

# The demo runs on the CPU through PoCL, whatever other drivers are installed; its kernel cache stays in the build folder.
icd=/etc/OpenCL/vendors/pocl.icd
if [ ! -e "$icd" ]; then
  echo "demo: $icd is missing: install the package pocl-opencl-icd" >&2
  exit 1
fi
export OCL_ICD_VENDORS="$icd"
export POCL_CACHE_DIR="$PWD/$build/pocl_cache"
mkdir -p "$POCL_CACHE_DIR"

say "xpu record -- ${program[*]}"
"$build/bin/xpu" record -f -o demo.xpu -- "${program[@]}"

say "xpu report demo.xpu"
"$build/bin/xpu" report demo.xpu

say "xpu check demo.xpu"
"$build/bin/xpu" check demo.xpu

say "xpu export --format chrome demo.xpu"
"$build/bin/xpu" export --format chrome -f -o demo.json.gz demo.xpu

cat <<TEXT

demo.xpu      the recording: build/demo/bin/xpu report demo.xpu --by queue
demo.json.gz  the timeline: open it in https://ui.perfetto.dev (the file stays in your browser) or chrome://tracing
TEXT
