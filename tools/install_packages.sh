#!/usr/bin/env bash
# Installs Debian packages, as root or with sudo; does nothing, quickly, when all of them are there.
#
#   tools/install_packages.sh [PACKAGE...]            default: every package of packages.txt
#   tools/install_packages.sh --missing [PACKAGE...]  only prints those that are not installed
#
# A package that this release of Debian does not have is named and left out: the stages of run_tests.sh that need it are skipped.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)

# Installed packages and what they provide: some vendors' nodejs, for one, brings npm with it.
installed_names() {
  dpkg-query --show --showformat='${db:Status-Status}\t${Package}, ${Provides}\n' |
    sed -n 's/^installed\t//p' | tr ',' '\n' | sed 's/ *([^)]*)//; s/ //g' | LC_ALL=C sort -u
}

missing_of() {
  command -v dpkg-query >/dev/null || return 0  # not Debian: whoever builds here knows better
  comm -23 <(printf '%s\n' "$@" | LC_ALL=C sort -u) <(installed_names)
}

only_print=
if [[ ${1:-} == --missing ]]; then
  only_print=yes
  shift
fi
packages=("$@")
if [[ $# -eq 0 ]]; then
  mapfile -t packages < <(sed '/^#/d; /^$/d' "$root/packages.txt")
fi

mapfile -t missing < <(missing_of "${packages[@]}")
if [[ -n $only_print ]]; then
  [[ ${#missing[@]} -eq 0 ]] || printf '%s\n' "${missing[@]}"
  exit 0
fi
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "Packages are missing, and installing them needs root. Run this once as root:" >&2
    echo "  apt-get update && apt-get install --yes --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# No pipe into grep -q: it ends at its first match, and what still writes to it then fails, now and then.
has_candidate() {
  local policy
  policy=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null)
  [[ $policy =~ Candidate:\ [^\(] ]]
}
for package in "${missing[@]}"; do
  if ! has_candidate "$package"; then
    "${as_root[@]}" apt-get update -qq
    break
  fi
done
wanted=()
for package in "${missing[@]}"; do
  if has_candidate "$package"; then
    wanted+=("$package")
  else
    echo "left out, this release does not have it: $package"
  fi
done
if [[ ${#wanted[@]} -gt 0 ]]; then
  install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends -qq "${wanted[@]}")
  # A list of packages that is older than the archive names files that are gone: refresh it and try once more.
  "${install[@]}" || { "${as_root[@]}" apt-get update -qq && "${install[@]}"; }
fi
