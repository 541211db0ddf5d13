#!/usr/bin/env bash
# A stranger's program and the example are built against libxpu in each way that is offered, and run: from the build tree, after an install into
# a DESTDIR, and through pkg-config from an install that was moved to another folder afterwards.
#
#   install_test.sh BUILD_FOLDER WORK_FOLDER LIBDIR      LIBDIR: where libraries go below the prefix, e.g. lib/x86_64-linux-gnu
set -euo pipefail

build=$(realpath "$1") work=$(realpath -m "$2") libdir=$3
source_folder=$(cd "$(dirname "$0")" && pwd)
consumer=$source_folder/consumer examples=$source_folder/../../examples
rm -rf "$work/build-tree" "$work/destdir" "$work/installed" "$work/before-move" "$work/moved" "$work/pkg-config" "$work/kernels"
mkdir -p "$work"
unset XPU_DRIVER XPU_VISIBLE_DEVICES XPU_SIM_PROGRAM
export XPU_CACHE_DIR=$work/kernels

fail() {
  echo "install_test: $*" >&2
  exit 1
}

expected_output() {
  local version
  version=$(sed -n 's/^Version: //p' "$build/xpu.pc")
  printf '%s\n' "xpu $version" "invalid_argument: 3 is odd, it must be even" "invalid_argument: 1 is odd, it must be even"
}

# The program must take the library from the folder under test and from nowhere else.
check_library() {
  local how=$1 program=$2 library_folder=$3 found
  found=$(ldd "$program" | sed -n 's/.*libxpu\.so\.0 => \([^ ]*\).*/\1/p')
  [[ $(realpath "$found") == "$(realpath "$library_folder")"/* ]] || fail "$how: libxpu.so.0 was taken from $found, not from $library_folder"
}

check_consumer() {
  local how=$1 program=$2 library_folder=$3 found
  found=$("$program") || fail "$how: $program failed"
  [[ $found == "$(expected_output)" ]] || fail "$how: the consumer printed: $found"
  check_library "$how" "$program" "$library_folder"
  echo "$how: ok"
}

# Right on both drivers; on sim it takes the programmed time, to the last digit.
check_first_program() {
  local how=$1 program=$2 library_folder=$3 found
  found=$("$program") || fail "$how: $program failed"
  [[ $found =~ ^.+:\ saxpy\ took\ [0-9]+\.[0-9]{3}\ ms,\ 1048576\ of\ 1048576\ right$ ]] || fail "$how: on host the example printed: $found"
  found=$(XPU_DRIVER=sim XPU_SIM_PROGRAM=$examples/sim_program.txt "$program") || fail "$how: $program failed on sim"
  [[ $found =~ ^.+:\ saxpy\ took\ 1\.234\ ms,\ 1048576\ of\ 1048576\ right$ ]] || fail "$how: on sim the example printed: $found"
  check_library "$how" "$program" "$library_folder"
  echo "$how: example ok"
}

build_project() {
  local how=$1 project=$2 folder=$3 prefix=$4
  if ! { cmake -S "$project" -B "$folder" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF && cmake --build "$folder"; } \
    >"$folder.log" 2>&1; then
    cat "$folder.log" >&2
    fail "$how: $project was not built"
  fi
}

build_with_find_package() {
  local how=$1 folder=$2 prefix=$3 library_folder=$4
  mkdir -p "$folder"
  build_project "$how" "$consumer" "$folder/consumer" "$prefix"
  check_consumer "$how" "$folder/consumer/consumer" "$library_folder"
  "$folder/consumer/annotated" || fail "$how: the C program failed"
  build_project "$how" "$examples" "$folder/examples" "$prefix"
  check_first_program "$how" "$folder/examples/first_program" "$library_folder"
}

build_with_pkg_config() {
  local how=$1 folder=$2 prefix=$3 flags
  mkdir -p "$folder"
  flags=$(PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig pkg-config --cflags --libs xpu)
  # shellcheck disable=SC2086  # several flags
  g++ -std=c++20 -Wall -Wextra -Werror "$consumer/consumer.cpp" $flags "-Wl,-rpath,$prefix/$libdir" -o "$folder/consumer"
  # shellcheck disable=SC2086
  g++ -std=c++20 -Wall -Wextra -Werror "$examples/first_program.cpp" $flags "-Wl,-rpath,$prefix/$libdir" -o "$folder/first_program"
  # shellcheck disable=SC2086
  gcc -std=c11 -Wall -Wextra -Werror "$consumer/annotated.c" $flags "-Wl,-rpath,$prefix/$libdir" -o "$folder/annotated"
  check_consumer "$how" "$folder/consumer" "$prefix/$libdir"
  check_first_program "$how" "$folder/first_program" "$prefix/$libdir"
  "$folder/annotated" || fail "$how: the C program failed"

  gcc -std=c11 -Wall -Wextra -Werror "$consumer/annotated.c" "-I$prefix/include" -o "$folder/annotated_alone"
  if readelf --dynamic "$folder/annotated_alone" | grep libxpu >/dev/null; then fail "$how: annotate.h made the program depend on libxpu"; fi
  "$folder/annotated_alone" || fail "$how: the C program failed without the library"
}

# A program and a layer that were installed find libxpu.so.0 by their own place.
check_installed_files() {
  local how=$1 prefix=$2 object found
  for object in "$prefix/bin/xpu" "$prefix/$libdir"/libxpu_layer_*.so; do
    [[ -e $object ]] || fail "$how: $object is missing"
    found=$(ldd "$object" | sed -n 's/.*libxpu\.so\.0 => \([^ ]*\).*/\1/p')
    [[ -n $found && $(realpath "$found") == "$(realpath "$prefix/$libdir")"/* ]] || fail "$how: $object takes libxpu.so.0 from '$found'"
  done
  "$prefix/bin/xpu" --version >/dev/null || fail "$how: xpu --version failed"
  found=$("$prefix/bin/xpu" info) || fail "$how: xpu info failed"
  [[ $found == *$'\ndevice 0 '* ]] || fail "$how: xpu info shows no device: $found"
  # Each header that is installed stands alone, in the language that its name promises.
  while read -r object; do
    case $object in
      *.h) echo "#include \"$object\"" | gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only -x c "-I$prefix/include" - ;;
      *.hpp) echo "#include \"$object\"" | g++ -std=c++20 -Wall -Wextra -Werror -fsyntax-only -x c++ "-I$prefix/include" - ;;
      *) fail "$how: $object is no header" ;;
    esac || fail "$how: $object does not stand alone"
  done < <(cd "$prefix/include" && find xpu -type f | LC_ALL=C sort)
  echo "$how: installed files ok"
}

build_with_find_package "from the build tree" "$work/build-tree" "$build" "$build/lib"

DESTDIR=$work/destdir cmake --install "$build" --prefix /opt/xpu >"$work/destdir.log"
build_with_find_package "installed into a DESTDIR" "$work/installed" "$work/destdir/opt/xpu" "$work/destdir/opt/xpu/$libdir"
check_installed_files "installed into a DESTDIR" "$work/destdir/opt/xpu"

cmake --install "$build" --prefix "$work/before-move" >"$work/before-move.log"
mv "$work/before-move" "$work/moved"
build_with_pkg_config "pkg-config, moved after the install" "$work/pkg-config" "$work/moved"
