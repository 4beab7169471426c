#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing need: the packages of deploy/packages.txt,
# and the NCCL and CUDA headers where nobody has them. Can be run again at no
# cost: without anything missing it asks no server and needs no privileges.
#
#   deploy/setup.sh            for building and testing
#   deploy/setup.sh --torch    PyTorch for tests/torch too, in build/torch-venv
#
# Elsewhere than on Debian and Ubuntu it says what is needed, and goes on if the
# tools are there. Exit 0: ready. Exit 1: not; the message says what to type.
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

# Runs a command as root.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif [ -t 0 ]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

install_packages() {
  local missing
  missing=$(missing_packages | tr '\n' ' ')
  if [ -z "$missing" ]; then
    step "packages: all there"
    return
  fi
  local by_hand="apt-get update && apt-get install --no-install-recommends $missing"
  if [ "$(id -u)" != 0 ] && ! command -v sudo > /dev/null; then
    fail "packages are missing, and this is neither root nor is there sudo; as root, type:" "$by_hand"
  fi
  step "packages: installing $missing"
  if [ "$(id -u)" != 0 ] && [ -t 0 ]; then sudo -v || true; fi
  # A mirror that cannot be reached may not matter: the lists may be new enough.
  quietly apt-update.log as_root apt-get update -qq || true
  # shellcheck disable=SC2086  # one word a package
  quietly apt-install.log as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y \
    --no-install-recommends -o DPkg::Lock::Timeout=300 $missing ||
    fail "the packages could not be installed; as root, type:" "$by_hand"
}

# On a distribution without dpkg: are the tools there, by whatever name?
check_tools() {
  local tool absent=
  step "packages: this is no Debian or Ubuntu; deploy/packages.txt says what is needed"
  for tool in c++ cmake ninja pkg-config protoc grpc_cpp_plugin python3; do
    command -v "$tool" > /dev/null || absent="$absent $tool"
  done
  [ -z "$absent" ] || fail "not found:$absent" \
    "install them, and the libraries that deploy/packages.txt lists, then run this again"
}

if command -v dpkg-query > /dev/null && command -v apt-get > /dev/null; then
  install_packages
else
  check_tools
fi

# The page is built with npm. Debian's package of that name clashes with the Node.js of other
# sources, which brings its own; and everything else works without the page.
install_npm() {
  if command -v npm > /dev/null; then return; fi
  step "page: installing nodejs and npm"
  quietly apt-npm.log as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y \
    --no-install-recommends -o DPkg::Lock::Timeout=300 nodejs npm ||
    step "page: LEFT OUT, nodejs and npm could not be installed"
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
