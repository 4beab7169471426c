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
"$root/deploy/setup_parts.sh" torch
# DeepSpeed compiles an extension at its first use. A process that is killed meanwhile leaves a lock,
# for which all others wait without end; so it is compiled here, and a lock left over is removed.
export TORCH_EXTENSIONS_DIR=$root/build/torch-venv/extensions
find "$TORCH_EXTENSIONS_DIR" -name lock -delete 2> /dev/null || true
"$root/build/torch-venv/bin/python" -c \
  'from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder; ShareMemCommBuilder().load(verbose=False)' \
  > "$root/build/torch-venv/extensions.log" 2>&1 ||
  echo "rollcall: DeepSpeed's extension is not compiled: $root/build/torch-venv/extensions.log" >&2
export LD_LIBRARY_PATH=$ROLLCALL_BUILD/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$root/build/torch-venv/bin/python" "$@"
