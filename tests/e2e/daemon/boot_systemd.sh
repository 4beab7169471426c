#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# systemd as the first process of its own namespaces, on this machine's root folder with a layer above
# it: what it writes is gone afterwards. For test_systemd.py, which ends it by killing this process.
#
#   boot_systemd.sh FOLDER CLONE    FOLDER/extra is copied over the root folder first, and CLONE is
#                                   mounted as /clone, where every user reaches it; needs root
set -e
[ -n "$ROLLCALL_BOOT_INSIDE" ] ||
  ROLLCALL_BOOT_INSIDE=1 exec unshare --mount --uts --ipc --pid --cgroup --net --fork --kill-child "$0" "$@"
folder=$1
root=$folder/root
mount --make-rprivate /
mkdir -p "$root"
mount -t tmpfs -o mode=755 tmpfs "$folder/layer"
mkdir "$folder/layer/upper" "$folder/layer/work"
mount -t overlay -o "lowerdir=/,upperdir=$folder/layer/upper,workdir=$folder/layer/work" overlay "$root"
# No service of this machine starts.
rm -rf "$root/etc/systemd/system" "$root/run" "$root/var/log/journal"
mkdir -p "$root/etc/systemd/system" "$root/run" "$root/clone"
cp -a "$folder/extra/." "$root/"
mount --rbind "$2" "$root/clone"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
  mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
  mkdir "$root/sys/fs/cgroup/systemd" "$root/sys/fs/cgroup/unified"
  mount -t cgroup -o none,name=systemd,xattr cgroup "$root/sys/fs/cgroup/systemd"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
fi
cd "$root"
mkdir -p .old-root
pivot_root . .old-root
umount -l /.old-root
exec env -i container=rollcall /lib/systemd/systemd --unit=basic.target --log-target=console
