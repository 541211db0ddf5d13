# shellcheck shell=bash
# What the scripts share that make environments of Python and wheels; to be sourced.
# root: the project; log: a file for what commands say; me: the script's name, before each of its lines.
: "${root:?}" "${log:?}" "${me:?}"

# Exit code where packages cannot be had: whoever calls may skip, with the reason.
readonly cannot_be_had=75

fail() {
  echo "$me: $*" >&2
  exit 1
}

# key_of_files PATH...: one hash over all files below these paths of the project, but for those that git ignores. Without git it is always another.
key_of_files() {
  if ! git -C "$root" rev-parse >/dev/null 2>&1; then
    date +%s%N
    return
  fi
  # A file that was removed and is known to git still has no contents: its name alone counts.
  (cd "$root" && git ls-files -z --cached --others --exclude-standard -- "$@" | LC_ALL=C sort -zu | xargs -0 -r sha256sum 2>&1) | sha256sum
}

# logged WHAT COMMAND...: its output goes to the log; where it fails, the log's end is shown and the script ends.
logged() {
  local what=$1
  shift
  "$@" >>"$log" 2>&1 </dev/null || {
    tail -n 30 "$log" >&2
    fail "$what failed, see $log"
  }
}

# use_environment FOLDER LOCK [FILE...]: an environment of the interpreter XPU_PYTHON (python3) with exactly what the lock file names; made anew when
# that, the interpreter or a FILE that the lock file includes has changed, or when it is not complete.
use_environment() {
  local folder=$1 lock=$2 python=${XPU_PYTHON:-python3} key seconds=$SECONDS said reason
  shift
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || fail "$python is no Python from 3.11; XPU_PYTHON may name another one"
  key=$(printf '%s\n' "$("$python" -c 'import sys; print(sys.executable, sys.version)')" "$folder" "$(sha256sum "$@")" | sha256sum)
  if [[ -e $folder/.complete && $(cat "$folder/.complete") == "$key" ]]; then
    echo "$me: packages as before, in $folder"
    return
  fi
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  logged "making the environment $folder" "$python" -m venv "$folder"
  said=$(mktemp)
  # No network is waited for long: one connection has 20 s.
  if ! "$folder/bin/python" -m pip --disable-pip-version-check --timeout 20 --retries 2 install --quiet --no-deps --only-binary :all: --require-hashes \
    --requirement "$lock" >"$said" 2>&1 </dev/null; then
    cat "$said" >>"$log"
    if grep "DO NOT MATCH THE HASHES" "$said" >/dev/null; then
      tail -n 20 "$said" >&2
      rm -f "$said"
      fail "a package is not the one that the lock file names"
    fi
    reason=$(grep '^ERROR' "$said" | tail -n 1 || true)
    rm -f "$said"
    echo "$me: not all packages of ${lock#"$root/"} can be had here. pip says: ${reason:-nothing, see $log}" >&2
    exit "$cannot_be_had"
  fi
  rm -f "$said"
  echo "$key" >"$folder/.complete"
  echo "$me: packages of ${lock#"$root/"} installed in $folder, $((SECONDS - seconds)) s"
}

# build_wheel ENVIRONMENT PROJECT BUILD_FOLDER OUT: the one wheel that is in OUT afterwards. What was compiled before stays in BUILD_FOLDER.
build_wheel() {
  local environment=$1 project=$2 build=$3 out=$4
  rm -rf "$out"
  logged "building the wheel of $project" "$environment/bin/python" -m pip --disable-pip-version-check wheel "$project" --no-build-isolation --no-deps \
    --no-index --wheel-dir "$out" --config-settings "build-dir=$build" --config-settings cmake.define.XPU_WERROR=ON
}
