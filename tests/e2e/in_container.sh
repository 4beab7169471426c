#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command as in a container: in user, pid and mount namespaces of its own, with the 64 MiB
# of /dev/shm that Docker and Kubernetes give.
#
# Exit 77: this system permits no such namespaces.
set -euo pipefail
container=(unshare --user --map-root-user --pid --fork --kill-child --mount --mount-proc
           bash -c 'mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm && exec "$@"' bash)
if ! "${container[@]}" true; then
  echo "left out: this system permits no user, pid and mount namespaces of one's own" >&2
  exit 77
fi
# All jobs share the 64 MiB: six at once filled them.
if [[ ${PYTEST_ADDOPTS:-} == *"-n "* ]]; then export PYTEST_ADDOPTS+=" --maxprocesses=4"; fi
exec "${container[@]}" "$@"
