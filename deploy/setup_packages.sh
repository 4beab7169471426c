#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/packages-venv: a private Python with the packages that
# tests/packages/requirements.txt pins. Costs nothing when all is there already.
#
# Exit 0: the environment is ready. Exit 1: it is not; one message says why.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
# The system's before the first on the path, which may be a version manager's shell script.
python=${PYTHON:-$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)}
venv=$root/build/packages-venv
requirements=$root/tests/packages/requirements.txt
stamp=$venv/rollcall-installed

fail() {
  echo "rollcall: $1" >&2
  echo "  $2" >&2
  exit 1
}

# What the environment was made from: when that changes, it is made anew.
wanted=$(cat "$requirements" "$0" | sha256sum)
if [ "$(cat "$stamp" 2> /dev/null)" = "$wanted" ] && "$venv/bin/python" -c '' 2> /dev/null; then
  exit 0
fi
rm -f "$stamp"
if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
  fail "$python cannot make virtual environments" \
    "on Debian and Ubuntu:  apt-get install python3-venv"
fi
"$python" -m venv --clear "$venv"

pip=("$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1)
if ! grep -v '^sglang' "$requirements" | "${pip[@]}" install -r /dev/stdin ||
  ! grep '^sglang' "$requirements" | "${pip[@]}" install --no-deps --no-compile -r /dev/stdin; then
  fail "cannot install what $requirements lists" \
    "is PyPI out of reach? with the wheels in a folder:  PIP_NO_INDEX=1 PIP_FIND_LINKS=DIR $0"
fi
echo "$wanted" > "$stamp"
