#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches what deploy/package.sh and tests/install need besides deploy/packages.txt: the packages of
# deploy/package/packages.txt, two sources, on x86-64 the libraries for aarch64, and build/package-venv with
# what deploy/package/requirements.txt pins. Does nothing if all is there. Goes on without the libraries for
# aarch64 if they cannot be had, and says so.
#
# Exit 0: it is there. Exit 1: it is not; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command -v apt-get > /dev/null || fail "packages are made on Debian 12: there is no apt-get here"
install_packages deploy/package/packages.txt
deploy/fetch_sources.sh
if [ "$(uname -m)" = x86_64 ]; then
  deploy/fetch_arm64.sh || step "packages for aarch64: LEFT OUT, the libraries for them are not there"
fi
venv=build/package-venv
requirements=deploy/package/requirements.txt
wanted=$(cat "$requirements" deploy/setup_install.sh | sha256sum)
if has_environment "$venv" "$wanted"; then exit 0; fi
make_environment "$venv"
"$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1 install -r "$requirements" ||
  cannot_install "$requirements"
echo "$wanted" > "$venv/rollcall-installed"
