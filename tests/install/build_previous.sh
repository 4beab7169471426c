#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages of an earlier commit with its own deploy/package.sh, for the tests of upgrades. Does
# nothing if they are there.
#
#   tests/install/build_previous.sh            ROLLCALL_PREVIOUS=COMMIT: another commit
#
# Writes build/previous/packages (debs) and build/previous/tree (the installed files). Exit 1: a step
# failed; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/common.sh"

commit=${ROLLCALL_PREVIOUS:-2ceb5d32cdb348e294cf90d72c785cf4be834b9a}
previous=$root/build/previous
[ "$(cat "$previous/built" 2> /dev/null)" != "$commit" ] || exit 0
git cat-file -e "$commit^{commit}" 2> /dev/null ||
  fail "this clone does not have the commit $commit" "git fetch --unshallow"

rm -rf "$previous"
source=$previous/source
mkdir -p "$source/build/headers"
# A copy: that commit may want others, and then replaces the folder.
[ ! -d build/sources ] || cp -r build/sources "$source/build/"
git archive "$commit" | tar -x -C "$source"
# Nothing has been released yet: both have the same number, and an upgrade needs a smaller one.
sed -i 's/^version=.*/version=0.0.9/' "$source/deploy/package.sh"

# As if the commit lay in this folder, and without the variables that package.sh sets: the compiler's cache
# may know it so.
in_this_folder() {
  # shellcheck disable=SC2016  # the inner shell's
  as_root unshare --mount bash -ec '
    mount --bind "$0/build/headers" "$1/build/headers"
    mount --rbind "$1" "$0"
    cd "$0"
    cmake --preset portable
    cmake --build --preset portable
    deploy/package.sh deb' "$root" "$source"
}

in_its_own_folder() {
  cp -r "$root/build/headers" "$source/build/"
  (cd "$source" && deploy/package.sh deb)
}

step "the packages of $commit"
if unshare --mount true 2> /dev/null; then build=in_this_folder; else build=in_its_own_folder; fi
quietly build-previous.log "$build"
mkdir "$previous/packages"
mv "$source"/build/package/*.deb "$previous/packages/"
mv "$source/build/package/tree" "$previous/tree"
rm -rf "$source"
echo "$commit" > "$previous/built"
