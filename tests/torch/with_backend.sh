#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a Python script with PyTorch, on the simulated NCCL of a build.
#
#   tests/torch/with_backend.sh BUILD_DIR SCRIPT [ARGUMENTS...]
#
# The exit code is the script's; 1 if something is missing.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
ROLLCALL_BUILD=$(cd "$1" && pwd)
export ROLLCALL_BUILD
shift

if [ ! -e "$ROLLCALL_BUILD/sim/libnccl.so.2" ]; then
  echo "rollcall: no simulated NCCL in $ROLLCALL_BUILD/sim" >&2
  echo "  build it:  cmake --preset release && cmake --build --preset release" >&2
  exit 1
fi
"$root/deploy/setup_torch.sh"
export LD_LIBRARY_PATH=$ROLLCALL_BUILD/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$root/build/torch-venv/bin/python" "$@"
