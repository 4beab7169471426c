#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the site of the docs: build/site/index.html, which opens without a server and searches
# without a network. Ends with an error on any link or anchor that leads nowhere.
#
#   docs/build_site.sh [FOLDER]       FOLDER: build/site
#
# Exit 0: built. Another exit code: not built; the output gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../deploy/common.sh"

site=$(realpath -m "${1:-build/site}")
deploy/setup_parts.sh site
python=build/site-venv/bin/python
"$python" docs/site/stage.py build/site-source build/site-venv/iframe-worker.js
# MkDocs reports links that lead nowhere as warnings; --strict makes them errors, but not with
# --quiet, which hides them. The variable switches an advertisement off.
export NO_MKDOCS_2_WARNING=1
quietly site.log "$python" -m mkdocs build --strict --config-file mkdocs.yml --site-dir "$site"
echo "$site/index.html"
