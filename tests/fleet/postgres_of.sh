#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the PostgreSQL server of another Debian release, into build/postgres/RELEASE, and prints the folder of
# its programs. They run on this system with their own release's loader and libraries. Needs root, debootstrap,
# patchelf and, the first time, the network.
#
#   ROLLCALL_POSTGRES=$(tests/fleet/postgres_of.sh bullseye) ctest --preset release -R Postgres    PostgreSQL 13
#   ROLLCALL_POSTGRES=$(tests/fleet/postgres_of.sh trixie) ...                                     PostgreSQL 17
#
# Exit 0: it is there. Exit 1: it cannot be had; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/common.sh"

release=${1:-}
[[ $release =~ ^[a-z]+$ ]] || fail "postgres_of.sh takes the name of a Debian release, not '$release'" \
  "tests/fleet/postgres_of.sh trixie"
userland=$root/build/postgres/$release

fetch() {
  { [ "$(id -u)" = 0 ] && command -v debootstrap patchelf > /dev/null; } ||
    fail "a userland of $release needs root, debootstrap and patchelf" "apt-get install debootstrap patchelf"
  rm -rf "$userland"
  mkdir -p "$userland" "$root/build/logs"
  quietly "postgres-$release.log" debootstrap --variant=minbase --include=postgresql "$release" "$userland" >&2
}

# The programs name the loader of their userland and its libraries, so that none of this system's comes in.
bind_to_userland() {
  local libraries loader
  libraries=$(echo "$userland"/usr/lib/*-linux-gnu)
  loader=$(find "$libraries" -maxdepth 1 -type f \( -name 'ld-[0-9]*.so' -o -name 'ld-linux-*.so.*' \) -print -quit)
  find "$userland"/usr/lib/postgresql/*/bin -type f -exec \
    patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" {} \;
}

if [ ! -e "$userland/made" ]; then
  fetch
  bind_to_userland
  touch "$userland/made"
fi
echo "$userland"/usr/lib/postgresql/*/bin
