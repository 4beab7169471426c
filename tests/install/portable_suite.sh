#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the end-to-end tests with the programs and the library of build/package instead of those of the
# build: with what is shipped. The jobs and the simulated NCCL are those of the build.
#
#   tests/install/portable_suite.sh BUILD_DIR [PYTEST_ARGUMENTS...]       after deploy/package.sh
#
# Exit 0: all passed. Another exit code: a test failed, or something is missing.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/common.sh"

build=$(cd "${1:?the build folder is missing; for example: build/release}" && pwd)
shift
shipped=$root/build/package/tree/usr
[ -x "$shipped/bin/rollcall" ] || fail "there are no packages" "deploy/package.sh"

# A folder like that of a build. Programs look for the library beside the file that they are, so they are
# copies.
suite=$root/build/portable-suite
rm -rf "$suite"
mkdir -p "$suite/bin" "$suite/lib"
for entry in "$build"/*; do
  case ${entry##*/} in bin | lib) ;; *) ln -s "$entry" "$suite/" ;; esac
done
cp "$shipped"/bin/* "$suite/bin/"
cp -r "$shipped/lib/rollcall/librollcall.so" "$shipped/lib/rollcall/demo" "$suite/lib/"
python=$(python_with_pytest) || fail "found no Python with pytest" "apt-get install python3-pytest"
ROLLCALL_BUILD=$suite exec "$python" -m pytest -q -p no:cacheprovider tests/e2e "$@"
