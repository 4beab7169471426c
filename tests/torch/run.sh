#!/usr/bin/env bash
# Runs the tests that need PyTorch, on the simulated NCCL of a build.
#
#   tests/torch/run.sh [BUILD_DIR] [PYTEST_ARGUMENTS...]       BUILD_DIR: build/release
#
# Exit 0: all passed. Another exit code: a test failed, or something is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "${1:-$root/build/release}" && pwd)
shift || true

if [ ! -e "$build/sim/libnccl.so.2" ]; then
  echo "rollcall: no simulated NCCL in $build/sim" >&2
  echo "  build it:  cmake --preset release && cmake --build --preset release" >&2
  exit 1
fi
"$root/deploy/setup_torch.sh"
export LD_LIBRARY_PATH=$build/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$root/build/torch-venv/bin/python" -m pytest -q -p no:cacheprovider "$here" "$@"
