#!/usr/bin/env bash
# Installs what building and testing Rollcall need, on Debian 12 or Ubuntu 22.04
# and 24.04. Can be run again at no cost: what is there already is left alone.
#
#   deploy/setup.sh [--torch]      --torch: also PyTorch, into build/torch-venv
#
# Exit 0: all is there. Exit 1: something is missing; it says what to do.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
want_torch=no
for argument in "$@"; do
  case $argument in
    --torch) want_torch=yes ;;
    *)
      echo "rollcall: setup.sh: unknown flag $argument (there is --torch)" >&2
      exit 2
      ;;
  esac
done

fail() {
  echo "rollcall: $1" >&2
  echo "  $2" >&2
  exit 1
}

missing_packages() {
  local package
  while read -r package _; do
    case $package in '' | '#'*) continue ;; esac
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done < "$root/deploy/packages.txt"
}

install_packages() {
  command -v apt-get > /dev/null ||
    fail "no apt-get here, and these are needed: $(awk '!/^#/ {print $1}' "$root/deploy/packages.txt" | xargs)" \
      "install your distribution's packages for them, then go on with cmake --preset release"
  local missing as_root=()
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo > /dev/null ||
      fail "installing packages needs root, and there is no sudo" \
        "as root:  apt-get install $(echo "$missing" | xargs)"
    as_root=(sudo)
  fi
  echo "setup: installing $(echo "$missing" | wc -l) packages"
  local log
  log=$(mktemp)
  # The lists may be missing or old; a mirror may fail once.
  for try in 1 2 3; do
    if "${as_root[@]}" apt-get -qq update > "$log" 2>&1 &&
      # shellcheck disable=SC2086 (a list of names)
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
        --no-install-recommends $missing >> "$log" 2>&1; then
      rm -f "$log"
      return 0
    fi
    sleep $((try * 3))
  done
  tail -20 "$log" >&2
  fail "apt-get could not install: $(echo "$missing" | xargs)" \
    "its last words are above; mend that, then run this again"
}

install_packages
if [ -n "${NCCL_HOME:-}" ] && [ -n "${CUDA_HOME:-}" ]; then
  echo "setup: NCCL and CUDA headers from NCCL_HOME and CUDA_HOME"
else
  "$root/deploy/fetch_headers.sh"
fi
if [ "$want_torch" = yes ]; then "$root/deploy/setup_torch.sh"; fi
