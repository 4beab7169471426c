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

packages() { sed -e 's/#.*//' deploy/packages.txt | awk 'NF { print $1 }'; }

missing_packages() {
  local package
  for package in $(packages); do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2> /dev/null) in
      ii* | hi*) ;;
      *) echo "$package" ;;
    esac
  done
}

# Updates the package lists once. Goes on if a mirror does not answer: the lists may be new enough.
lists_are_new=
update_lists() {
  [ -z "$lists_are_new" ] || return 0
  quietly apt-update.log as_root apt-get update -qq || true
  lists_are_new=1
}

install_packages() {
  local missing
  missing=$(missing_packages | tr '\n' ' ')
  if [ -z "$missing" ]; then
    step "packages: all are installed"
    return
  fi
  local by_hand="apt-get update && apt-get install --no-install-recommends $missing"
  if [ "$(id -u)" != 0 ] && ! command -v sudo > /dev/null; then
    fail "packages are missing, and only root can install them (there is no sudo); as root, type:" \
      "$by_hand"
  fi
  step "packages: installing $missing"
  if [ "$(id -u)" != 0 ] && [ -t 0 ]; then sudo -v || true; fi
  update_lists
  # shellcheck disable=SC2086  # one word a package
  quietly apt-install.log as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y \
    --no-install-recommends -o DPkg::Lock::Timeout=300 $missing ||
    fail "apt-get could not install the packages; as root, type:" "$by_hand"
}

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
  install_packages
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
  deploy/setup_torch.sh < /dev/null
fi
