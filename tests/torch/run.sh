#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that need PyTorch, on the simulated NCCL of a build.
#
#   tests/torch/run.sh [BUILD_DIR] [PYTEST_ARGUMENTS...]       BUILD_DIR: build/release
#
# Exit 0: all passed. Another exit code: a test failed, or something is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../../build/release}
shift || true
# Needs the environment of PyTorch. Without the frameworks, the tests that want them are skipped.
"$here/../../deploy/setup_torch.sh"
"$here/../../deploy/setup_frameworks.sh" || true
exec "$here/with_backend.sh" "$build" -m pytest -q -p no:cacheprovider "$here" "$@"
