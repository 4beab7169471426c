#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What needs a GPU: the hangs with real NCCL, markers, graphs, abort; and what a call costs.
# Several ranks share the first GPU.
#
#   tests/gpu/run.sh --bundle [BUILD]    here: packs build/gpu-bundle with what a machine without
#                                        gRPC lacks (BUILD: build/release)
#   tests/gpu/run.sh [OUT [NAME...]]     there: runs everything from that folder; a table and one
#                                        line a check on standard output, reports in OUT. NAME:
#                                        only these checks of transfers (transfers.py)
#   tests/gpu/run.sh --sim [OUT [NAME...]]   the same with the simulated NCCL: a test of the test
#
# OUT/results.jsonl has the results for programs: one line a check, with the verdict (results.py).
#
# There it needs g++, Python with PyTorch for CUDA, and the GPU's driver; no network. Exit 0: all
# checks passed. Exit 1: one did not. Exit 2: something is missing; the message says what.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
bundle=$root/build/gpu-bundle

fail() { printf 'tests/gpu: %s\n' "$@" >&2; exit 2; }

# The programs, and every library that they need but the C library and the loader: those
# belong to the machine.
pack() {
  local build=$1 program library
  [ -x "$build/bin/rollcall" ] || fail "$build/bin/rollcall is not there" "  deploy/setup.sh && cmake --build --preset release"
  rm -rf "$bundle"
  mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/needed"
  for program in rollcall rollcalld rollcall-agent; do
    install -s "$build/bin/$program" "$bundle/bin/"
  done
  install -s "$build/lib/librollcall.so" "$bundle/lib/"
  for program in "$bundle"/bin/*; do
    ldd "$program" | awk '/=> \// { print $3 }'
  done | sort -u | while read -r library; do
    case ${library##*/} in
      ld-linux* | libc.so* | libm.so* | libpthread.so* | libdl.so* | librt.so* | libresolv.so*) ;;
      *) install -m 644 "$library" "$bundle/needed/" ;;
    esac
  done
  du -sh "$bundle"
}

case ${1:-} in
  --bundle) pack "$(cd "${2:-$root/build/release}" && pwd)"; exit ;;
  --sim)
    shift
    export ROLLCALL_GPU_SIM=$root/build/release
    ;;
  -*) fail "unknown argument $1" "  tests/gpu/run.sh [--bundle [BUILD] | --sim] [OUT [NAME...]]" ;;
esac
out=${1:-$root/build/gpu}
mkdir -p "$out"

if [ -z "${ROLLCALL_GPU_SIM:-}" ]; then
  [ -d "$bundle" ] || fail "$bundle is not there: on the machine that built Rollcall" "  tests/gpu/run.sh --bundle"
  command -v nvidia-smi > /dev/null || fail "nvidia-smi is not there: this needs a GPU and its driver"
fi
exec python3 "$here/run_checks.py" "$out" "${@:2}"
