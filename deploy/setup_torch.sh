#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/torch-venv: a private Python with the CPU build of PyTorch and the
# frameworks that tests/torch/requirements.txt pins, and the backend of
# tests/torch/backend, which `import torch` finds by itself. Does nothing if the
# environment exists already.
#
#   PYTHON=/opt/python3.12/bin/python3 deploy/setup_torch.sh     use another Python
#
# Exit 0: the environment is ready. Exit 1: it is not; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

venv=build/torch-venv
requirements=tests/torch/requirements.txt
backend=tests/torch/backend

# A hash of the inputs. If the inputs change, this script updates the environment.
wanted=$(cat "$requirements" "$backend"/*.* "$backend"/rollcall_torch_nccl/*.py \
  deploy/setup_torch.sh | sha256sum)
works() { [ -x "$venv/bin/pip" ] && "$venv/bin/python" -c '' 2> /dev/null; }
if works && has_environment "$venv" "$wanted"; then exit 0; fi
works || make_environment "$venv"
rm -f "$venv/rollcall-installed"

pip=("$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1)

# PyPI has DeepSpeed as source, and its set-up needs the installed torch.
if ! grep -v '^deepspeed' "$requirements" | "${pip[@]}" install -r /dev/stdin wheel ||
  ! "${pip[@]}" install --no-build-isolation -r "$requirements"; then
  cannot_install "$requirements"
fi
if ! "$venv/bin/python" -c 'import torch, sys; sys.exit(torch.version.cuda is not None)'; then
  fail "pip chose a build of PyTorch that does not load, or a build for CUDA" \
    "name the index of the CPU builds (pytorch.org, Get started):  PIP_INDEX_URL=URL $0"
fi

# Installs from a copy, because setuptools writes its temporary files beside the sources.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$backend" "$scratch/"
if ! "${pip[@]}" install --no-index --no-deps --no-build-isolation --force-reinstall \
    "$scratch/backend"; then
  fail "cannot compile and install the backend of tests/torch/backend" \
    "pip printed the reason above; on Debian and Ubuntu:  apt-get install g++ python3-dev"
fi
echo "$wanted" > "$venv/rollcall-installed"
