#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian's Prometheus in build/prometheus, for the tests: unpacked, not installed, since the package
# would start a service. Costs nothing when it is there already.
#
# Exit 0: ready. Exit 1: not; one message says why.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
target=$root/build/prometheus
if [ -x "$target/usr/bin/promtool" ]; then exit 0; fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! (cd "$scratch" && apt-get download -qq prometheus > /dev/null 2>&1); then
  echo "rollcall: apt-get could not fetch the package prometheus" >&2
  echo "  the tests of metrics with the real Prometheus are left out" >&2
  exit 1
fi
mkdir -p "$target"
dpkg -x "$scratch"/prometheus_*.deb "$target"
"$target/usr/bin/promtool" --version > /dev/null
