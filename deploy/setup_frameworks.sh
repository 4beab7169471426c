#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/frameworks-venv: Accelerate, Transformers, Megatron-core, Ray, torchft and trackers for
# tests/torch/frameworks. The environment lies over build/torch-venv, whose packages it sees and
# does not change. Does nothing if the environment exists already. Needs deploy/setup_torch.sh first.
#
# Exit 0: the environment is ready. Exit 1: it is not; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

venv=build/frameworks-venv
requirements=tests/torch/frameworks/requirements.txt
below=$(realpath build/torch-venv)

wanted=$(cat "$requirements" deploy/setup_frameworks.sh "$below/rollcall-installed" | sha256sum)
if has_environment "$venv" "$wanted"; then exit 0; fi
make_environment "$venv"
packages='import sysconfig; print(sysconfig.get_path("purelib"))'
"$below/bin/python" -c "$packages" > "$("$venv/bin/python" -c "$packages")/torch-venv.pth"
"$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1 install -r "$requirements" ||
  cannot_install "$requirements"
echo "$wanted" > "$venv/rollcall-installed"
