# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the scripts in deploy/ share. Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

step() { printf '== %s\n' "$*"; }

# fail WHAT [NEXT...]: what went wrong, and what to type next.
fail() {
  printf 'rollcall: %s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}

# quietly LOG COMMAND...: the output goes to build/logs/LOG; its end is shown if
# the command fails.
quietly() {
  local log=$root/build/logs/$1
  shift
  mkdir -p "$root/build/logs"
  if "$@" > "$log" 2>&1 < /dev/null; then return 0; fi
  tail -n "${ROLLCALL_LOG_LINES:-60}" "$log" >&2
  printf 'rollcall: failed: %s\n  the whole output:  %s\n' "$*" "$log" >&2
  return 1
}

# The first Python that has pytest: the one on the path may be a version
# manager's, without the packages that the system's has.
python_with_pytest() {
  local python
  for python in ${PYTHON:-} /usr/bin/python3 python3; do
    if "$python" -c 'import pytest' 2> /dev/null; then
      echo "$python"
      return 0
    fi
  done
  return 1
}

# configure PRESET
configure() {
  local python
  python=$(python_with_pytest) || fail "no Python with pytest" \
    "on Debian and Ubuntu:  apt-get install python3-pytest"
  quietly "configure-$1.log" cmake --preset "$1" -DBUILD_TESTING=ON -DPython3_EXECUTABLE="$python"
}
