#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unpacks Debian's Prometheus into build/prometheus, for the tests. Does not install the package,
# because the package would start a service. Does nothing if build/prometheus exists already.
#
# Exit 0: ready. Exit 1: not ready; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

target=build/prometheus
mkdir -p build
# Several tests may run this at once: one fetches, and the others wait for it.
exec 9> "$target.lock"
flock 9
if [ -x "$target/usr/bin/promtool" ]; then exit 0; fi
# In build/, so that the last step is a rename: what another sees at $target is whole.
scratch=$(mktemp -d "$target-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
if ! (cd "$scratch" && apt-get download -qq prometheus > /dev/null 2>&1); then
  fail "apt-get could not download the package prometheus" \
    "ctest skips the tests with the real Prometheus; try again:  deploy/setup_prometheus.sh"
fi
dpkg -x "$scratch"/prometheus_*.deb "$scratch/unpacked"
"$scratch/unpacked/usr/bin/promtool" --version > /dev/null
rm -rf "$target"
mv "$scratch/unpacked" "$target"
