#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goes from a fresh machine to a first verdict: installs the required packages,
# builds Rollcall, runs a job of four ranks that hangs on the simulated NCCL
# (without a GPU), and prints Rollcall's verdict.
#
#   deploy/try.sh            a small C++ job whose rank 3 stops calling
#   deploy/try.sh --torch    a PyTorch DDP job whose rank 3 has fewer batches
#   deploy/try.sh --fleet    three daemons on a PostgreSQL server, ten agents and a job of
#                            ten ranks; kills the daemon that owns the job, and shows that
#                            the incident lives on (deploy/try_fleet.sh)
#
# Exit 0: the verdict was right. Exit 1: the verdict was wrong, or a step failed;
# the last lines give the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build=build/release
launcher=$build/tests/ranks
example=$build/tests/one_rank_stops_calling
targets=(rollcall rollcalld rollcall-agent rollcall_library sim_cuda sim_cudart sim_nccl)
began=$SECONDS

job=example
for argument in "$@"; do
  case $argument in
    --torch) job=torch ;;
    --fleet) job=fleet ;;
    *) fail "deploy/try.sh: unknown argument $argument" "deploy/try.sh [--torch|--fleet]" ;;
  esac
done

if [ "$job" = torch ]; then
  deploy/setup.sh --torch
  # torchrun starts its workers with the python on the path.
  export PATH=$root/build/torch-venv/bin:$PATH
  hang_after=10s
  command=(torchrun --nproc-per-node 4 tests/torch/uneven-inputs/train.py)
  expected="cause rank_exited, rank 3, advice uneven-inputs"
else
  deploy/setup.sh
  targets+=("$(basename "$launcher")" "$(basename "$example")")
  hang_after=5s
  command=("$launcher" -n 4 -- "$example")
  expected="cause missing_rank, rank 3"
fi

step "configuring $build"
configure release
step "building (this takes most of the time)"
quietly build-try.log cmake --build --preset release --target "${targets[@]}"
if [ "$job" = fleet ]; then exec deploy/try_fleet.sh; fi

reports=$(mktemp -d "$root/build/try-$job-XXXXXX")
run=("$build/bin/rollcall" run --sim "--hang-after=$hang_after" --on-hang=abort
     "--report-dir=$reports")
step "running a job of four ranks that hangs; Rollcall ends it after the verdict:"
printf '   %s\n' "${run[*]/#$root\//} -- ${command[*]}"
exit_code=0
"${run[@]}" -- "${command[@]}" > "$reports/job.log" 2>&1 < /dev/null || exit_code=$?
# Print only Rollcall's lines. PyTorch's messages about its end stay in the log.
grep '^rollcall:' "$reports/job.log" || true

# The verdict in incident.json, in the form of $expected.
verdict=$(python3 - "$reports" <<'PY'
import json, pathlib, sys
files = sorted(pathlib.Path(sys.argv[1]).glob("*/incident.json"))
if not files:
    sys.exit("rollcall wrote no report")
verdict = json.loads(files[0].read_text())["verdicts"][0]
text = f"cause {verdict['cause']}, " + ", ".join(f"rank {c['rank']}" for c in verdict["culprits"])
for advice in verdict["advice"]:
    text += f", advice {advice['id']}"
print(text)
PY
) || verdict="no verdict"

elapsed=$((SECONDS - began))
if [ "$exit_code" != 75 ] || [[ "$verdict," != "$expected,"* ]]; then
  tail -n 20 "$reports/job.log" >&2
  fail "expected exit code 75 and: $expected" "got exit code $exit_code and: $verdict" \
    "the job's output:  $reports/job.log" "after $elapsed s"
fi
step "the report:  $(dirname "$reports"/*/incident.json)"
step "done in $((elapsed / 60)) min $((elapsed % 60)) s"
