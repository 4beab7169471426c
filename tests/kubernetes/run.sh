#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests what puts Rollcall into a Kubernetes cluster, without a cluster: the Helm chart, the webhook,
# the admission policy, and a pod that namespaces imitate.
#
#   tests/kubernetes/run.sh [BUILD_DIR] [PYTEST_ARGUMENTS...]       BUILD_DIR: build/release
#
# Exit 0: all passed. Another exit code: a test failed, or something is missing.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
ROLLCALL_BUILD=$(cd "${1:-$root/build/release}" && pwd)
export ROLLCALL_BUILD
shift || true

"$root/deploy/setup_kubernetes.sh"
exec "$root/build/kubernetes-venv/bin/python" -m pytest -q -p no:cacheprovider "$here" "$@"
