#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs Debian's chromium, and makes build/browser-venv with the packages that
# tests/browser/requirements.txt pins, for the browser tests. Does nothing if both
# exist already.
#
# Exit 0: ready. Exit 1: not ready; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

venv=build/browser-venv
requirements=tests/browser/requirements.txt

if [ ! -x /usr/bin/chromium ]; then
  # Ubuntu's package chromium is a snap, which has no /usr/bin/chromium.
  if ! grep -q '^ID=debian' /etc/os-release 2> /dev/null; then
    fail "cannot find /usr/bin/chromium, which the browser tests start" \
      "install Chromium or Chrome, and link its program to /usr/bin/chromium"
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=300 chromium > /dev/null 2>&1 ||
    fail "apt-get could not install chromium" \
      "as root:  apt-get update && apt-get install --no-install-recommends chromium"
fi

wanted=$(sha256sum < "$requirements")
if has_environment "$venv" "$wanted"; then exit 0; fi
# The tests use the system's pytest, so the system's Python makes the environment, with its packages.
PYTHON='' make_environment "$venv" --system-site-packages
"$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1 install -r "$requirements" ||
  cannot_install "$requirements"
echo "$wanted" > "$venv/rollcall-installed"
