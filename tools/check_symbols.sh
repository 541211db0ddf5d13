#!/usr/bin/env bash
# What our shared objects show to strangers: only names that are ours, no newer C or C++ library than Debian 12 has, and next to nothing for
# each thread.
#
#   tools/check_symbols.sh BUILD_FOLDER    checks lib/libxpu.so, lib/libxpu_layer_*.so, bin/xpu and python/xpu/_core*.so there
#   tools/check_symbols.sh --self-test     proves with small libraries that each rule can fail
#
# The version rule says something only about what was linked on Debian 12 or older; elsewhere it is reported and skipped with the reason.
set -euo pipefail

readonly max_glibc=2.36 max_glibcxx=3.4.30 max_cxxabi=1.3.13
readonly max_thread_bytes=1280
readonly opencl_layer_names="clDeinitLayer clGetLayerInfo clInitLayer clInitLayerWithProperties"
failures=0

fail() {
  echo "check_symbols: $*" >&2
  failures=$((failures + 1))
}

# Defined dynamic symbols without version suffixes; the version nodes themselves (absolute symbols) are left out.
exported_names() {
  nm --dynamic --defined-only --format=posix "$1" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | LC_ALL=C sort -u
}

# An Itanium mangled name whose entity, or the entity that a table, guard or thunk belongs to, is in namespace xpu.
is_ours() {
  [[ $1 == xpu_* ]] || [[ $1 =~ ^_Z(T[ISVTHW]|GV|GR|TC|Th[n0-9]+_|Tv[n0-9]+_n?[0-9]+_|Tc[hv].*_)?Z?N[KRO]*3xpu ]]
}

check_library() {
  local library=$1 names name
  names=$(exported_names "$library")
  [[ -n $names ]] || fail "$library exports nothing"
  for name in $names; do
    is_ours "$name" || fail "$library exports '$(c++filt "$name")', which neither begins with xpu_ nor is in namespace xpu"
  done
}

check_opencl_layer() {
  local library=$1 name missing=
  for name in $(exported_names "$library"); do
    [[ $name == xpu_* || " $opencl_layer_names " == *" $name "* ]] || fail "$library exports '$(c++filt "$name")', which no OpenCL loader asks for"
  done
  for name in $opencl_layer_names; do
    exported_names "$library" | grep -x "$name" >/dev/null || missing+=" $name"
  done
  [[ -z $missing ]] || fail "$library does not export$missing"
}

check_python_module() {
  local module=$1 names
  names=$(exported_names "$module")
  [[ $names == PyInit__core ]] || fail "$module exports '${names//$'\n'/ }' instead of PyInit__core alone"
}

# The highest version of a family (GLIBC, GLIBCXX, CXXABI) that the object requires.
highest_required() {
  # GLIBC_PRIVATE and GLIBC_ABI_… are no version numbers.
  objdump -p "$1" | grep -oE "\b$2_[0-9]+(\.[0-9]+)*" | sed "s/^$2_//" | sort -uV | tail -n 1 || true
}

is_newer() {
  [[ $1 != "$2" && $(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1) == "$1" ]]
}

check_versions() {
  local object=$1 family limit found
  for family in GLIBC GLIBCXX CXXABI; do
    case $family in
      GLIBC) limit=$max_glibc ;;
      GLIBCXX) limit=$max_glibcxx ;;
      CXXABI) limit=$max_cxxabi ;;
    esac
    found=$(highest_required "$object" "$family")
    if [[ -n $found ]] && is_newer "$found" "$limit"; then
      fail "$object requires ${family}_$found, Debian 12 has ${family}_$limit"
    fi
  done
}

report_versions() {
  local object=$1
  echo "$object requires GLIBC $(highest_required "$object" GLIBC), GLIBCXX $(highest_required "$object" GLIBCXX)"
}

# The C library keeps some 1,664 bytes for the thread-local memory of all libraries that are loaded late, as a layer loads libxpu.so. With
# more it cannot be loaded at all.
check_thread_memory() {
  local object=$1 bytes
  bytes=$(readelf --program-headers --wide "$object" | awk '$1 == "TLS" { print $6 }')
  [[ $((bytes)) -le $max_thread_bytes ]] || fail "$object has $((bytes)) bytes of thread-local memory, at most $max_thread_bytes find room in every program"
}

# Programs and layers find libxpu.so relative to themselves, so that a moved or unpacked tree works.
check_runpath() {
  local object=$1 entry
  readelf --dynamic "$object" | grep 'Shared library: \[libxpu\.so\.0\]' >/dev/null || { fail "$object does not link libxpu.so.0"; return; }
  entry=$(readelf --dynamic "$object" | sed -n 's/.*Library runpath: \[\(.*\)\]/\1/p')
  # shellcheck disable=SC2016  # $ORIGIN is meant for the dynamic linker
  [[ ${entry%%:*} == '$ORIGIN'* ]] || fail "$object has the RUNPATH '$entry', it must begin with \$ORIGIN"
}

check_build() {
  local build=$1 objects=() object host_glibc
  [[ -e $build/lib/libxpu.so ]] || { echo "check_symbols: $build/lib/libxpu.so is not there: build first" >&2; exit 2; }
  objects+=("$build/lib/libxpu.so")
  check_library "$build/lib/libxpu.so"
  check_thread_memory "$build/lib/libxpu.so"
  for object in "$build"/lib/libxpu_layer_*.so; do
    [[ -e $object ]] || continue
    objects+=("$object")
    check_runpath "$object"
    case $object in
      */libxpu_layer_opencl.so) check_opencl_layer "$object" ;;
      *) fail "$object has no rule in tools/check_symbols.sh" ;;
    esac
  done
  if [[ -x $build/bin/xpu ]]; then
    objects+=("$build/bin/xpu")
    check_runpath "$build/bin/xpu"
  fi

  for object in "$build"/python/xpu/_core*.so; do
    [[ -e $object ]] || continue
    objects+=("$object")
    check_runpath "$object"
    check_python_module "$object"
  done

  host_glibc=$(getconf GNU_LIBC_VERSION | awk '{ print $2 }')
  for object in "${objects[@]}"; do report_versions "$object"; done
  if is_newer "$host_glibc" "$max_glibc"; then
    echo "version limits: skipped, this system has glibc $host_glibc and what is linked here may require it (the limit is Debian 12's $max_glibc)"
  else
    for object in "${objects[@]}"; do check_versions "$object"; done
  fi
}

expect_failures() {
  local what=$1 expected=$2
  if [[ $failures -ne $expected ]]; then
    echo "check_symbols: self-test '$what': $failures complaints instead of $expected" >&2
    exit 1
  fi
  failures=0
}

self_test() {
  local folder names_c
  folder=$(mktemp -d)
  # shellcheck disable=SC2064  # expanded now: the folder is local to this function
  trap "rm -rf '$folder'" EXIT
  make_library() { g++ -shared -fPIC -x c++ -o "$folder/$1.so" - <<<"$2"; }

  make_library good 'extern "C" void xpu_ok() {} namespace xpu { struct Shape { virtual ~Shape(); }; Shape::~Shape() {} int area() { static Shape one; return 1; } }'
  check_library "$folder/good.so"
  expect_failures "names of ours are accepted" 0

  make_library bad 'extern "C" void helper() {} namespace fmt { void format() {} } namespace xpu { void fine() {} } namespace xpu_not { void other() {} }'
  check_library "$folder/bad.so" 2>/dev/null
  expect_failures "foreign names are refused" 3

  make_library threads 'extern "C" { __attribute__((visibility("default"))) thread_local char xpu_much[2000]; }'
  check_thread_memory "$folder/threads.so" 2>/dev/null
  expect_failures "much memory for each thread is refused" 1

  names_c='extern "C" { void clGetLayerInfo() {} void clInitLayer() {} void clInitLayerWithProperties() {} void clDeinitLayer() {} }'
  make_library layer "$names_c"
  check_opencl_layer "$folder/layer.so"
  expect_failures "a whole layer is accepted" 0
  make_library layer_open "$names_c namespace xpu { void leaked() {} }"
  check_opencl_layer "$folder/layer_open.so" 2>/dev/null
  expect_failures "a layer that exports more is refused" 1
  make_library layer_short 'extern "C" { void clGetLayerInfo() {} void clInitLayer() {} }'
  check_opencl_layer "$folder/layer_short.so" 2>/dev/null
  expect_failures "a layer without an entry point is refused" 1

  make_library module 'extern "C" void PyInit__core() {}'
  check_python_module "$folder/module.so"
  expect_failures "a module for Python is accepted" 0
  make_library module_open 'extern "C" { void PyInit__core() {} void helper() {} }'
  check_python_module "$folder/module_open.so" 2>/dev/null
  expect_failures "a module for Python that exports more is refused" 1

  check_runpath "$folder/layer.so" 2>/dev/null
  expect_failures "a layer that does not link libxpu.so.0 is refused" 1
  is_newer 2.38 "$max_glibc" || fail "2.38 is newer than $max_glibc"
  is_newer 2.4 "$max_glibc" && fail "2.4 is not newer than $max_glibc"
  is_newer 3.4.9 "$max_glibcxx" && fail "3.4.9 is not newer than $max_glibcxx"
  expect_failures "versions are compared as numbers" 0
  echo "check_symbols: self-test ok"
}

case ${1:-} in
  --self-test) self_test ;;
  "" | -*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  *)
    check_build "$1"
    [[ $failures -eq 0 ]] || exit 1
    echo "check_symbols: ok"
    ;;
esac
