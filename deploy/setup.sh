#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of deploy/packages.txt, which the build and the tests need.
# Downloads the NCCL and CUDA headers unless NCCL_HOME and CUDA_HOME are set. If
# nothing is missing, this script asks no server and needs no privileges.
#
#   deploy/setup.sh            for building and testing
#   deploy/setup.sh --torch    PyTorch for tests/torch too, in build/torch-venv
#
# On a distribution other than Debian and Ubuntu, this script goes on if it finds
# the tools. Exit 0: ready. Exit 1: not ready; the message says what to type.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

torch=
for argument in "$@"; do
  case $argument in
    --torch) torch=1 ;;
    *) fail "deploy/setup.sh: unknown argument $argument" "deploy/setup.sh [--torch]" ;;
  esac
done

# On a distribution without dpkg: checks for the tools, because packages have other names there.
check_tools() {
  local tool absent=
  step "packages: this is not Debian or Ubuntu; deploy/packages.txt lists the packages to install"
  for tool in c++ cmake ninja pkg-config protoc grpc_cpp_plugin python3; do
    command -v "$tool" > /dev/null || absent="$absent $tool"
  done
  [ -z "$absent" ] || fail "cannot find these tools:$absent" \
    "install them and the libraries that deploy/packages.txt lists, then run this again"
}

if command -v dpkg-query > /dev/null && command -v apt-get > /dev/null; then
  install_packages deploy/packages.txt
else
  check_tools
fi

# npm builds the page. It is not in deploy/packages.txt, because Debian's package npm conflicts with
# a Node.js from another source, which has its own npm. Without npm everything except the page works.
install_npm() {
  if command -v npm > /dev/null; then return; fi
  step "page: installing nodejs and npm"
  update_lists
  quietly apt-npm.log as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y \
    --no-install-recommends -o DPkg::Lock::Timeout=300 nodejs npm ||
    step "page: LEFT OUT, apt-get could not install nodejs and npm"
}
if command -v apt-get > /dev/null; then install_npm; fi

if [ -n "${NCCL_HOME:-}" ] && [ -n "${CUDA_HOME:-}" ]; then
  step "headers: from NCCL_HOME and CUDA_HOME"
else
  step "headers: NCCL and CUDA in build/headers"
  deploy/fetch_headers.sh < /dev/null
fi

if [ -n "$torch" ]; then
  step "PyTorch: build/torch-venv"
  deploy/setup_parts.sh torch
fi
