#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the API server and the controllers of Kubernetes into build/api-server, for test_api_server.py. No
# package of Debian 12 holds the programs, but its source package does. Takes about ten minutes on two cores.
# Installs packages, so it needs root; on a machine with systemd the package etcd-server starts its service.
#
# Exit 0: they are there. Exit 1: they are not; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/common.sh"

programs=(kube-apiserver kube-controller-manager)
packages=(dpkg-dev etcd-server golang-1.19-go golang-github-modern-go-reflect2-dev make rsync)
target=$root/build/api-server
tree=$target/go/src/k8s.io/kubernetes
if [ -x "$target/${programs[0]}" ] && [ -x "$target/${programs[1]}" ] && command -v etcd > /dev/null; then exit 0; fi

[ "$(. /etc/os-release && echo "$VERSION_CODENAME")" = bookworm ] ||
  fail "only Debian 12's source package of Kubernetes has an API server, and this is another system"
update_lists
quietly api-server-packages.log as_root apt-get install -y --no-install-recommends \
  "${packages[@]}" || fail "cannot install the compiler" "apt-get install ${packages[*]}"

step "api server: fetching the source"
rm -rf "$target/go"
mkdir -p "${tree%/*}"
download_sources api-server-source.log "$target/go" kubernetes
quietly api-server-unpack.log dpkg-source --no-check -x "$target"/go/kubernetes_*.dsc "$tree"

# The vendored reflect2 is older than Go 1.18, with which it writes past a map's iterator: the server
# would crash. Debian's own is newer.
reflect2=github.com/modern-go/reflect2
rm -rf "$tree/vendor/$reflect2"
cp -r "/usr/share/gocode/src/$reflect2" "$tree/vendor/$reflect2"

# As the package's own rules build kubectl: with the vendored modules, in a GOPATH.
step "api server: building"
quietly api-server-build.log env -u GOFLAGS PATH="/usr/lib/go-1.19/bin:$PATH" GOPATH="$target/go" CGO_ENABLED=0 \
  GOCACHE="$target/go/cache" HOME="$target/go" \
  make -C "$tree" WHAT="$(printf 'cmd/%s ' "${programs[@]}")"
for program in "${programs[@]}"; do mv "$tree/_output/bin/$program" "$target/"; done
chmod -R u+w "$target/go"
rm -rf "$target/go"
