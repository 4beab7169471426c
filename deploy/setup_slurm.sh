#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs Debian's Slurm, munge and Lmod for the tests of deploy/slurm. It configures and starts
# nothing: the tests bring their own configuration, in namespaces of their own. Does nothing if all
# are there already.
#
# Exit 0: ready. Exit 1: not ready; one message gives the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(slurmctld slurmd slurm-client munge libslurm-dev slurm-wlm-basic-plugins-dev lmod tcl)

if dpkg-query --show --showformat='${db:Status-Status}\n' "${packages[@]}" 2> /dev/null |
  grep -vqx installed || [ "$(dpkg-query --show "${packages[@]}" 2> /dev/null | wc -l)" != "${#packages[@]}" ]; then
  # The packages would start their services, which have no configuration.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    as_root sh -c "printf '#!/bin/sh\nexit 101\n' > $policy && chmod 0755 $policy"
    trap 'as_root rm -f "$policy"' EXIT
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=300 "${packages[@]}" > /dev/null 2>&1 ||
    fail "apt-get could not install ${packages[*]}" \
      "as root:  apt-get update && apt-get install --no-install-recommends ${packages[*]}"
fi
[ -f /usr/include/slurm/spank.h ] ||
  fail "found no /usr/include/slurm/spank.h" "as root:  apt-get install slurm-wlm-basic-plugins-dev"
