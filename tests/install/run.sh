#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the packages by deploy/package.sh and tries them as their users would: installs, runs, removes.
#
#   tests/install/run.sh [BUILD_DIR] [PYTEST_ARGUMENTS...]       BUILD_DIR: not used
#
# Exit 0: all passed. Another exit code: a test failed, or something is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
case ${1:-} in -* | "") ;; *) shift ;; esac
deploy/package.sh
export ROLLCALL_PACKAGES=$root/build/package
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider "$here" "$@"
