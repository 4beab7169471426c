#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/torch-venv: a private Python with the CPU build of PyTorch and the
# frameworks that tests/torch/requirements.txt pins, and the backend of
# tests/torch/backend, which `import torch` finds by itself. Costs nothing when all
# is there already.
#
#   PYTHON=/opt/python3.12/bin/python3 deploy/setup_torch.sh     made from another Python
#
# Exit 0: the environment is ready. Exit 1: it is not; one message says why.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
# The system's before the first on the path, which may be a version manager's shell script.
python=${PYTHON:-$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)}
venv=$root/build/torch-venv
requirements=$root/tests/torch/requirements.txt
backend=$root/tests/torch/backend
stamp=$venv/rollcall-installed

fail() {
  echo "rollcall: $1" >&2
  echo "  $2" >&2
  exit 1
}

# What the environment was made from: when that changes, it is brought up to date.
wanted=$(cat "$requirements" "$backend"/*.* "$backend"/rollcall_torch_nccl/*.py "$0" |
  sha256sum)
works() { [ -x "$venv/bin/pip" ] && "$venv/bin/python" -c '' 2>/dev/null; }
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && works; then exit 0; fi

rm -f "$stamp"
if ! works; then
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    fail "$python cannot make virtual environments" \
      "on Debian and Ubuntu:  apt-get install python3-venv"
  fi
  "$python" -m venv --clear "$venv"
fi

pip=("$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1)
# DeepSpeed comes as source, and its set-up wants the torch that is installed here.
if ! grep -v '^deepspeed' "$requirements" | "${pip[@]}" install -r /dev/stdin wheel ||
  ! "${pip[@]}" install --no-build-isolation -r "$requirements"; then
  fail "cannot install what $requirements lists" \
    "is PyPI out of reach? with the wheels in a folder:  PIP_NO_INDEX=1 PIP_FIND_LINKS=DIR $0"
fi
if ! "$venv/bin/python" -c 'import torch, sys; sys.exit(torch.version.cuda is not None)'; then
  fail "pip chose a build of PyTorch that does not load, or one for CUDA" \
    "name the index of the CPU builds (pytorch.org, Get started):  PIP_INDEX_URL=URL $0"
fi

# From a copy, because setuptools leaves its work beside the sources.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$backend" "$scratch/"
if ! "${pip[@]}" install --no-index --no-deps --no-build-isolation --force-reinstall \
    "$scratch/backend"; then
  fail "cannot compile and install the backend of tests/torch/backend" \
    "pip said why above; on Debian and Ubuntu it needs:  apt-get install g++ python3-dev"
fi
echo "$wanted" > "$stamp"
