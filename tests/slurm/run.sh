#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of deploy/slurm on a real Slurm of two nodes, which lives in namespaces of its own.
#
#   tests/slurm/run.sh [BUILD_DIR] [PYTEST_ARGUMENTS...]       BUILD_DIR: build/release
#
# Exit 0: all passed. Another exit code: a test failed, or something is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
ROLLCALL_BUILD=$(cd "${1:-$root/build/release}" && pwd)
export ROLLCALL_BUILD
shift || true

"$root/deploy/setup_slurm.sh"
# shellcheck source=deploy/common.sh
source "$root/deploy/common.sh"
exec "$(python_with_pytest)" -m pytest -q -rs -p no:cacheprovider "$here" "$@"
