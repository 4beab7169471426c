#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/site-venv with the packages that tests/site/requirements.txt pins, and
# build/site-venv/iframe-worker.js from npm, for the site of the docs; and what the browser tests
# need, for the test of the site. Does nothing if all exist already.
#
#   deploy/setup_site.sh               to build and test the site
#   deploy/setup_site.sh --site-only   to build it, without a browser
#
# Exit 0: ready. Exit 1: not ready; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

venv=build/site-venv
requirements=tests/site/requirements.txt
shim=iframe-worker@1.0.4

case ${1:-} in
  '') deploy/setup_browser.sh ;;
  --site-only) ;;
  *) fail "deploy/setup_site.sh: unknown argument $1" "deploy/setup_site.sh [--site-only]" ;;
esac

# A hash of the inputs. If the inputs change, this script makes the environment anew.
wanted=$(cat "$requirements" deploy/setup_site.sh | sha256sum)
if has_environment "$venv" "$wanted"; then exit 0; fi
command -v npm > /dev/null ||
  fail "found no npm, which fetches $shim for the site" "on Debian and Ubuntu:  apt-get install npm"
make_environment "$venv"
"$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1 install -r "$requirements" ||
  cannot_install "$requirements"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && npm pack --silent --fetch-retries=1 "$shim" > /dev/null && tar xzf ./*.tgz) ||
  fail "npm could not fetch $shim" "is the registry of npm reachable?  npm ping"
cp "$scratch/package/shim/index.js" "$venv/iframe-worker.js"
echo "$wanted" > "$venv/rollcall-installed"
