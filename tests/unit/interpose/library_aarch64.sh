#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Cross-builds the library for aarch64, and runs the tests of what it makes of calls
# and of processes on it, under user-mode emulation; the segments are read on this machine.
#
#     library_aarch64.sh BUILD NCCL_INCLUDE_DIR CUDA_INCLUDE_DIR
#
# Exit 77: there is no cross compiler, or no emulator.
set -euo pipefail

build=$1 nccl=$2 cuda=$3
root=$(cd "$(dirname "$0")/../../.." && pwd)
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  if ! command -v $tool > /dev/null; then
    echo "$tool is not installed (Debian: g++-aarch64-linux-gnu, qemu-user)"
    exit 77
  fi
done
foreign=$build/aarch64
cmake -S "$root" -B "$foreign" -G Ninja -DROLLCALL_LIBRARY_ONLY=ON \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DNCCL_INCLUDE_DIR="$nccl" -DCUDA_INCLUDE_DIR="$cuda" > "$foreign.log" 2>&1 || {
  cat "$foreign.log"
  exit 1
}
cmake --build "$foreign" > "$foreign.log" 2>&1 || {
  tail -50 "$foreign.log"
  exit 1
}

# One build runs in old containers there too.
newest=$(aarch64-linux-gnu-objdump -T "$foreign/lib/librollcall.so" |
  grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -1)
if [ "$newest" != GLIBC_2.17 ]; then
  echo "librollcall.so for aarch64 needs $newest"
  exit 1
fi

export ROLLCALL_TEST_FOREIGN_BUILD=$foreign
export ROLLCALL_TEST_EMULATOR="qemu-aarch64 -L /usr/aarch64-linux-gnu"
# Not under emulation: a filter of system calls, and children that are this machine's own programs.
suites=$(cd "$(dirname "$0")" && sed -nE 's/^TEST(_[FP])?\((\w+),.*/*\2.*/p' \
  library_{blocked_calls,calls,communicators,graphs,late,markers,process}_test.cc | sort -u | paste -sd :)
"$build/tests/interpose_test" --gtest_brief=1 "--gtest_filter=$suites-*NoSystemCall*:*AnyChildMayInherit*"
