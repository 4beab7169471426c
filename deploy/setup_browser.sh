#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the browser tests need: Debian's chromium, and build/browser-venv with what
# tests/browser/requirements.txt pins. Costs nothing when both are there already.
#
# Exit 0: ready. Exit 1: not; one message says why.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
python=$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)
venv=$root/build/browser-venv
requirements=$root/tests/browser/requirements.txt
stamp=$venv/rollcall-installed

fail() {
  echo "rollcall: $1" >&2
  echo "  $2" >&2
  exit 1
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

if ! command -v chromium > /dev/null; then
  # Ubuntu's package of this name is a snap, which needs more than a package manager.
  if ! grep -q '^ID=debian' /etc/os-release 2> /dev/null; then
    fail "chromium is not there" "install it so that 'chromium' is on the path"
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    chromium > /dev/null 2>&1 ||
    fail "chromium could not be installed" "as root:  apt-get install --no-install-recommends chromium"
fi

wanted=$(sha256sum < "$requirements")
if [ "$(cat "$stamp" 2> /dev/null)" = "$wanted" ] && "$venv/bin/python" -c '' 2> /dev/null; then
  exit 0
fi
rm -f "$stamp"
# The system's pytest is used, so its packages are seen.
"$python" -m venv --clear --system-site-packages "$venv"
"$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1 install -r "$requirements" ||
  fail "cannot install playwright" "is PyPI out of reach?"
echo "$wanted" > "$stamp"
