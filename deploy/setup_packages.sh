#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/packages-venv: a private Python with the packages that
# tests/packages/requirements.txt pins. Does nothing if the environment exists already.
#
# Exit 0: the environment is ready. Exit 1: it is not; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

venv=build/packages-venv
requirements=tests/packages/requirements.txt

# A hash of the inputs. If the inputs change, this script makes the environment anew.
wanted=$(cat "$requirements" deploy/setup_packages.sh | sha256sum)
if has_environment "$venv" "$wanted"; then exit 0; fi
make_environment "$venv"

pip=("$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1)
if ! grep -v '^sglang' "$requirements" | "${pip[@]}" install -r /dev/stdin ||
  ! grep '^sglang' "$requirements" | "${pip[@]}" install --no-deps --no-compile -r /dev/stdin; then
  cannot_install "$requirements"
fi
echo "$wanted" > "$venv/rollcall-installed"
