#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the site of the docs, opens it in a browser from its folder, and runs the commands that the
# pages show.
#
#   tests/site/run.sh [BUILD_DIR] [PYTEST_ARGUMENTS...]       BUILD_DIR: build/release
#
# Exit 0: all passed. Another exit code: a test failed, or something is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
ROLLCALL_BUILD=$(cd "${1:-$root/build/release}" && pwd)
export ROLLCALL_BUILD
shift || true

"$root/deploy/setup_site.sh"
exec "$root/build/browser-venv/bin/python" -m pytest -q -p no:cacheprovider "$here" "$@"
