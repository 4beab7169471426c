#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the sources of libraries that Debian does not ship as static ones, for the preset `portable`:
# cpp-httplib, prometheus-cpp, and PostgreSQL for its libpq. Debian's signed index of source packages names them and
# their checksums. Writes to build/sources and changes no setting of the system.
#
# Exit 0: the sources are there. Exit 1: they are not; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(cpp-httplib prometheus-cpp postgresql)
# The source of a library whose name has its version: "postgresql-15".
source_of() {
  case $1 in
    postgresql) dpkg-query --show --showformat='${source:Package}' libpq-dev 2> /dev/null || true ;;
    *) echo "$1" ;;
  esac
}
names=()
for package in "${packages[@]}"; do names+=("$(source_of "$package")"); done
sources=$root/build/sources
stamp=$sources/fetched
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
wanted=$(cat deploy/fetch_sources.sh deploy/common.sh <(echo "$release" "${names[@]}") | sha256sum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then exit 0; fi

command -v dpkg-source > /dev/null && [ -n "$release" ] ||
  fail "the sources of ${packages[*]} come from Debian's packages, and this is no Debian with dpkg-dev" \
    "build without the preset portable"
[ -n "$(source_of postgresql)" ] || fail "libpq-dev is not installed" "deploy/setup.sh"
rm -rf "$sources"
mkdir -p "$sources"
download_sources fetch-sources.log "$sources" "${names[@]}"
for package in "${packages[@]}"; do
  # apt-get has checked the checksums by the signed index.
  dpkg-source --no-check -x "$sources/$(source_of "$package")"_*.dsc "$sources/$package" \
    >> "$root/build/logs/fetch-sources.log" 2>&1 ||
    fail "cannot unpack the source of $package (build/logs/fetch-sources.log)" "rm -r build/sources, and try again"
done
echo "$wanted" > "$stamp"
