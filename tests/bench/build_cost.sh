#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What it costs to go from a fresh clone to the first verdict, and to learn of a mistake in one file: wall time and CPU
# time of deploy/try.sh without a compiler cache, and of a second build after a change. One row for each commit, all in
# one run. Takes 6 to 12 minutes for each.
#
#   tests/bench/build_cost.sh COMMIT...
#
# Exit 0: each commit was measured. Exit 1: a clone, a build or a verdict failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ $# -gt 0 ] || { sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 1; }

export CCACHE_DISABLE=1
clones=$(mktemp -d)
trap 'rm -rf "$clones"' EXIT

# took COMMAND...: prints the seconds of wall time and the seconds of CPU time.
took() {
  local TIMEFORMAT='%R %U %S' times
  times=$({ time "$@" > "$clones/output" 2>&1 < /dev/null; } 2>&1) || { tail -20 "$clones/output" >&2; return 1; }
  awk '{ printf "%.0f %.0f", $1, $2 + $3 }' <<< "$times"
}

printf '%-10s | %-23s | %-23s\n' '' 'first verdict, seconds' 'after a change of a rule'
printf '%-10s | %10s %12s | %10s %12s\n' commit wall CPU wall CPU
for commit in "$@"; do
  clone=$clones/$commit
  git clone --quiet --no-hardlinks . "$clone"
  git -C "$clone" checkout --quiet --detach "$commit"
  first=$(took "$clone/deploy/try.sh")
  rule=$(git -C "$clone" ls-files '*/missing_rank.cc')
  echo >> "$clone/$rule"
  second=$(took cmake --build "$clone/build/release" --target rollcall)
  # shellcheck disable=SC2086  # two words each
  printf '%-10s | %10s %12s | %10s %12s\n' "$commit" $first $second
  rm -rf "$clone"
done
