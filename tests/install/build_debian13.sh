#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Rollcall natively on Debian 13, whose gRPC, Abseil, Protobuf, libunwind and compiler are newer than
# Debian 12's: in a userland of its own, build/debian13, without the page. Needs root, debootstrap and the
# network.
#
#   tests/install/build_debian13.sh            the programs and the library, and --version of each
#   tests/install/build_debian13.sh --tests    all of it, and the tests that are neither end-to-end nor PyTorch's
#
# CMAKE_BUILD_PARALLEL_LEVEL limits the compilers at once. Exit 0: it builds (and the tests pass). Exit 77:
# there is no such userland here. Exit 1: a step failed; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/common.sh"

tests=
case ${1:-} in
  '') ;;
  --tests) tests=1 ;;
  *) fail "build_debian13.sh: unknown argument $1" "tests/install/build_debian13.sh [--tests]" ;;
esac
release=trixie
userland=$root/build/debian13

leave_out() {
  step "Debian 13: LEFT OUT, $1"
  exit 77
}

[ "$(id -u)" = 0 ] || leave_out "a userland needs root"
command -v debootstrap > /dev/null || leave_out "there is no debootstrap (apt-get install debootstrap)"
[ -d build/headers ] || deploy/fetch_headers.sh < /dev/null

if [ ! -e "$userland/made" ]; then
  step "Debian 13: making its userland"
  rm -rf "$userland"
  mkdir -p build
  quietly debian13-debootstrap.log debootstrap --variant=minbase "$release" "$userland" ||
    leave_out "debootstrap cannot make its userland (build/logs/debian13-debootstrap.log)"
  touch "$userland/made"
fi

# inside COMMAND...: runs it in the userland, where /source is this folder, which it cannot change.
inside() {
  unshare --mount --pid --fork --kill-child bash -ec '
    mount --bind "$0" "$0"  # so that programs in it may change the mounts of their root
    mount -t proc proc "$0/proc"
    mkdir -p "$0/source" "$0/build" "$0/dev/shm"
    mount -t tmpfs tmpfs "$0/dev/shm"
    mount --bind "$1" "$0/source"
    mount -o remount,bind,ro "$0/source"
    cp /etc/resolv.conf "$0/etc/resolv.conf"
    userland=$0
    shift
    exec chroot "$userland" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-}" "$@"' \
    "$userland" "$root" "$@"
}

# The newer names of packages that Debian 13 has renamed come from its own lists.
wanted=$(sha256sum < deploy/packages.txt)
if [ "$(cat "$userland/installed" 2> /dev/null)" != "$wanted" ]; then
  step "Debian 13: installing what deploy/packages.txt lists"
  names=$(sed -e 's/#.*//' deploy/packages.txt | awk 'NF { print $1 }')
  # shellcheck disable=SC2086  # one word a package
  quietly debian13-packages.log inside sh -c 'apt-get -q update && apt-get install -y --no-install-recommends "$@"' \
    sh $names || leave_out "apt-get cannot install its packages (build/logs/debian13-packages.log)"
  echo "$wanted" > "$userland/installed"
fi

step "Debian 13: building (gRPC $(inside pkg-config --modversion grpc++), Abseil $(
  inside pkg-config --modversion absl_base), Protobuf $(inside pkg-config --modversion protobuf), $(
  inside g++ --version | head -n 1))"
quietly debian13-configure.log inside cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DROLLCALL_PAGE=OFF -DBUILD_TESTING=ON
programs=(rollcall rollcalld rollcall-agent rollcall-probe)
targets=()
[ -n "$tests" ] || targets=(--target "${programs[@]}" rollcall_library)
begun=$SECONDS
quietly debian13-build.log inside cmake --build /build "${targets[@]}" -- -k 0
step "Debian 13: built in $((SECONDS - begun)) s"
for program in rollcall rollcalld rollcall-agent; do inside "/build/bin/$program" --version; done
[ -n "$tests" ] || exit 0
begun=$SECONDS
ROLLCALL_LOG_LINES=80 quietly debian13-tests.log inside ctest --test-dir /build -LE e2e --output-on-failure
step "Debian 13: tests passed in $((SECONDS - begun)) s"
tail -n 12 build/logs/debian13-tests.log
