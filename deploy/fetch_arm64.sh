#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches Debian's libraries for aarch64 and unpacks them into build/arm64, for the preset
# `portable-aarch64`. Debian's signed index names the packages and their checksums. Needs no root and
# changes no setting of the system: its architectures stay as they are, and no package of it is exchanged.
# Does nothing if the libraries are there; to have newer ones:  rm -r build/arm64
#
# Exit 0: they are there. Exit 1: they are not; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

list=deploy/package/packages-arm64.txt
sysroot=$root/build/arm64
stamp=$sysroot/fetched
release=$(. /etc/os-release && echo "${ID:-} ${VERSION_CODENAME:-}")
wanted=$(cat "${BASH_SOURCE[0]}" "$list" <(echo "$release") | sha256sum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then exit 0; fi

case $release in
  "debian "?*) release=${release#debian } ;;
  *) fail "the libraries for aarch64 come from Debian's packages, and this is no Debian" \
    "packages for this machine's processor alone:  deploy/package.sh --arch=$(uname -m)" ;;
esac
rm -rf "$sysroot"
apt=$sysroot/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root/build/logs"
# The mirrors of this system, so that a site's own mirror is used.
mirror_of() {
  grep -rhoE "https?://[^ ]+/$1/?( |$)" /etc/apt/sources.list /etc/apt/sources.list.d 2> /dev/null |
    head -n 1 | tr -d ' ' || true
}
key=/usr/share/keyrings/debian-archive-keyring.gpg
mirror=$(mirror_of debian)
[ -n "$mirror" ] ||
  fail "apt's settings name no mirror of Debian, from which the libraries for aarch64 come" \
    "add one to /etc/apt/sources.list"
{
  echo "deb [arch=arm64 signed-by=$key] $mirror $release main"
  security=$(mirror_of debian-security)
  [ -z "$security" ] || echo "deb [arch=arm64 signed-by=$key] $security $release-security main"
} > "$apt/sources.list"
# An apt of its own, which knows of no package that is installed.
: > "$apt/status"
cat > "$apt/apt.conf" << CONF
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Debug::NoLocking "true";
CONF
export APT_CONFIG=$apt/apt.conf
names=$(sed -e 's/#.*//' "$list" | awk 'NF { print $1 }')
# shellcheck disable=SC2086  # one word a package
{
  apt-get -q update && apt-get -q install --download-only -y $names
} > "$root/build/logs/fetch-arm64.log" 2>&1 < /dev/null ||
  fail "cannot fetch the libraries for aarch64 (build/logs/fetch-arm64.log)" \
    "check the network, then:  deploy/fetch_arm64.sh"

# Unpacked, not installed: no script of a package runs. dpkg's database says which file is whose, for
# the licences and the SBOM.
database=$sysroot/var/lib/dpkg
mkdir -p "$database/info" "$sysroot/usr/lib" "$sysroot/usr/bin"
touch "$database/available"
for folder in lib bin; do ln -s "usr/$folder" "$sysroot/$folder"; done
echo arm64 > "$database/arch"
echo 1 > "$database/info/format"
for deb in "$apt"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$sysroot"
  name=$(dpkg-deb --field "$deb" Package)
  if [ "$(dpkg-deb --field "$deb" Multi-Arch)" = same ]; then name=$name:arm64; fi
  dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -e 's,^\./*,/,' -e 's,/$,,' -e 's,^$,/.,' > "$database/info/$name.list"
  { dpkg-deb --field "$deb" | sed '1a Status: install ok installed'; echo; } >> "$database/status"
done
rm -rf "$apt"
echo "$wanted" > "$stamp"
