#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of deploy/slurm on a real Slurm of two nodes, which lives in namespaces of its own.
#
#   tests/slurm/run.sh [BUILD_DIR] [PYTEST_ARGUMENTS...]       BUILD_DIR: build/release
#
# The Slurm of another release, here Debian 13's, with static programs (deploy/package.sh builds them):
#
#   debootstrap --variant=minbase --include=python3,libstdc++6,slurmctld,slurmd,slurm-client,munge,procps,\
#   libjemalloc2,gcc,libc6-dev,libslurm-dev,slurm-wlm-basic-plugins-dev trixie /tmp/trixie
#   ROLLCALL_SLURM_ROOT=/tmp/trixie ROLLCALL_SLURM_PROGRAMS=$PWD/build/portable/bin tests/slurm/run.sh
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
