#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a container image of an installed tree: nothing but the static programs, the library and the
# licences. Needs no container daemon and no root.
#
#   deploy/package/image.sh TREE VERSION ARCHITECTURE OUTPUT       ARCHITECTURE: amd64 or arm64
#
# Writes rollcall-image-VERSION-ARCHITECTURE.oci.tar (an OCI layout, for podman, skopeo and registries)
# and .docker.tar.gz (for `docker load`) into OUTPUT. The same tree and SOURCE_DATE_EPOCH give the same
# bytes.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

tree=$1 version=$2 architecture=$3 output=$4
user=65532  # nobody's: no file of a host or of another image belongs to it
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
# An archive of the sources has the commit in a file, and no .git.
if [ -e .git ]; then commit=$(git rev-parse HEAD); else commit=$(cat service/commit.txt); fi

# The demo and its simulated NCCL need Python and glibc; the probe of GPUs loads the driver's library.
# None of them can run where there is nothing else.
image_root=$work/root
mkdir -p "$image_root/usr/bin" "$image_root/usr/lib/rollcall" "$image_root/usr/share/doc" "$image_root/var/lib/rollcall" "$image_root/tmp"
for program in rollcall rollcalld rollcall-agent rollcall-probe; do
  cp "$tree/usr/bin/$program" "$image_root/usr/bin/"
done
cp "$tree/usr/lib/rollcall/librollcall.so" "$image_root/usr/lib/rollcall/"
cp -r "$tree/usr/share/doc/rollcall" "$image_root/usr/share/doc/"
rm "$image_root/usr/share/doc/rollcall/changelog.gz"

# pack OWNER MODE: appends the files of the standard input to the layer.
layer=$work/layer.tar
pack() {
  LC_ALL=C sort | tar --append --file="$layer" --directory="$image_root" --no-recursion --format=gnu --numeric-owner \
    --owner="$1" --group="$1" --mode="$2" --mtime="@$SOURCE_DATE_EPOCH" --files-from=-
}
(cd "$image_root" && find usr var) | grep -vx var/lib/rollcall | pack 0 u=rwX,go=rX
echo var/lib/rollcall | pack "$user" 0755
echo tmp | pack 0 1777

layout=$work/layout
image=$layout:$version
umoci init --layout "$layout"
umoci new --image "$image"
umoci raw add-layer --image "$image" --history.created "$created" --history.created_by deploy/package.sh "$layer"
umoci config --image "$image" --no-history --created "$created" --os linux --architecture "$architecture" \
  --config.user "$user:$user" --config.workingdir /var/lib/rollcall --config.env PATH=/usr/bin \
  --config.cmd rollcall --config.cmd --help \
  --config.exposedports 7655/tcp --config.exposedports 7656/tcp \
  --config.label org.opencontainers.image.title=rollcall \
  --config.label org.opencontainers.image.description="Finds out why a distributed training job hangs" \
  --config.label org.opencontainers.image.version="$version" \
  --config.label org.opencontainers.image.revision="$commit" \
  --config.label org.opencontainers.image.licenses=Apache-2.0
umoci gc --layout "$layout"  # the states before the last

name=$output/rollcall-image-$version-$architecture
tar --create --file="$name.oci.tar" --directory="$layout" --sort=name --owner=0 --group=0 --numeric-owner \
  --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" blobs index.json oci-layout
quietly image-docker.log skopeo copy --insecure-policy --tmpdir "$work" "oci:$image" \
  "docker-archive:$work/docker.tar:rollcall:$version"
gzip -n -9 < "$work/docker.tar" > "$name.docker.tar.gz"
