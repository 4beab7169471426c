#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Downloads the headers of NCCL and CUDA into build/headers, from NVIDIA's wheels
# on PyPI. Keeps only the headers and the names that NCCL's library exports
# (nccl_symbols), and installs nothing. Does nothing if build/headers has the
# pinned versions already.
#
# Exit 0: the headers are in build/headers. Exit 1: the download failed.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

nccl=nvidia-nccl-cu13==2.28.9
cuda_runtime=nvidia-cuda-runtime==13.0.96
cuda_crt=nvidia-cuda-crt==13.0.88
cuda_cccl=nvidia-cuda-cccl==13.0.85  # nv/target, which cuda_fp16.h includes

target=build/headers
stamp=$target/versions
pins=("$nccl" "$cuda_runtime" "$cuda_crt" "$cuda_cccl")
if [ "$(cat "$stamp" 2>/dev/null)" = "${pins[*]}" ] && [ -e "$target/nccl_symbols" ]; then exit 0; fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# --platform: any platform will do, because the headers are equal for all processors and libcs.
if ! "$(system_python)" -m pip download --quiet --no-deps --only-binary=:all: \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
    --platform manylinux_2_18_x86_64 --platform manylinux2014_x86_64 \
    -d "$scratch" "${pins[@]}"; then
  fail "cannot fetch the NCCL and CUDA headers from PyPI (${pins[*]})" \
    "if you have the headers, set NCCL_HOME and CUDA_HOME and run this again"
fi
mkdir -p "$target"
python3 - "$scratch" "$target" <<'PY'
import pathlib, sys, zipfile
for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    with zipfile.ZipFile(wheel) as z:
        z.extractall(sys.argv[2], [n for n in z.namelist()
                                   if "/include/" in n and "/include/cccl/" not in n])
        z.extractall(sys.argv[1], [n for n in z.namelist() if n.endswith("/libnccl.so.2")])
PY
nm -D --defined-only "$scratch/nvidia/nccl/lib/libnccl.so.2" > "$target/nccl_symbols"
echo "${pins[*]}" > "$stamp"
