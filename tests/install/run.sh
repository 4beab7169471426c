#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries the packages that deploy/package.sh makes, each as its users would: installs, runs, removes.
#
#   tests/install/run.sh [PYTEST_ARGUMENTS...]
#
# Exit 0: all passed. Another exit code: a test failed, or something is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
[ -f build/package/SHA256SUMS ] || deploy/package.sh
export ROLLCALL_PACKAGES=$root/build/package
exec /usr/bin/python3 -m pytest -q -p no:cacheprovider "$here" "$@"
