#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries packages of PyPI that load NCCL, with and without the library of a build.
#
#   tests/packages/run.sh [BUILD_DIR] [PYTEST_ARGUMENTS...]       BUILD_DIR: build/release
#
# Exit 0: all passed. Another exit code: a test failed, or something is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
ROLLCALL_BUILD=$(cd "${1:-$root/build/release}" && pwd)
export ROLLCALL_BUILD
shift || true

"$root/deploy/setup_packages.sh"
exec "$root/build/packages-venv/bin/python" -m pytest -q -p no:cacheprovider "$here" "$@"
