#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the SPANK plugin against the Slurm of this machine, whose headers it needs:
#
#   build.sh [FILE]        FILE: spank_rollcall.so in this folder
#
# On Debian and Ubuntu the headers are in slurm-wlm-basic-plugins-dev, with SchedMD's rpms in
# slurm-devel. A Slurm elsewhere:  CFLAGS=-I/opt/slurm/include build.sh
#
# Exit 0: FILE is there. Exit 1: it is not; one message gives the reason.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/spank_rollcall.so}
compiler=${CC:-cc}
# shellcheck disable=SC2086
if ! printf '#include <slurm/spank.h>\n' | $compiler ${CFLAGS:-} -E -x c - > /dev/null 2>&1; then
  echo "rollcall: cannot find slurm/spank.h, or no C compiler ($compiler)" >&2
  echo "  Debian, Ubuntu:   apt-get install gcc libc6-dev libslurm-dev slurm-wlm-basic-plugins-dev" >&2
  echo "  SchedMD's rpms:   dnf install gcc slurm-devel" >&2
  echo "  another folder:   CFLAGS=-I/opt/slurm/include $0" >&2
  exit 1
fi
# shellcheck disable=SC2086
exec $compiler -std=gnu11 -Wall -Wextra -O2 -fPIC -shared ${CFLAGS:-} ${LDFLAGS:-} -o "$out" "$here/spank_rollcall.c"
