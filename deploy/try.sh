#!/usr/bin/env bash
# See Rollcall at work, on a fresh machine and without a GPU: installs what is
# needed, builds, and runs a 4-rank job that hangs under the simulated NCCL.
#
#   deploy/try.sh            a small NCCL program whose last rank goes its own way
#   deploy/try.sh --torch    a real PyTorch DDP training loop, one rank short of steps
#
# Exit 0: the job hung, as it should, and the guilty rank was named.
set -euo pipefail

begun=$(date +%s)
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
build=build/release
victim=one_rank_stops_calling
cause=missing_rank
hang_after=5s
command=("$build/tests/ranks" -n 4 -- "$build/tests/$victim")
torch=()
for argument in "$@"; do
  case $argument in
    --torch)
      torch=(--torch)
      cause=rank_exited
      hang_after=10s
      command=(torchrun --nproc-per-node 4 tests/torch/uneven-inputs/train.py)
      export PATH="$root/build/torch-venv/bin:$PATH"
      ;;
    *)
      echo "rollcall: try.sh: unknown flag $argument (there is --torch)" >&2
      exit 2
      ;;
  esac
done

deploy/setup.sh "${torch[@]}"
echo "try: building (minutes on two cores, seconds the next time)"
log=build/try.log
mkdir -p build
if ! { cmake --preset release && cmake --build --preset release --target \
    rollcall rollcall_library sim_nccl sim_cudart ranks "$victim"; } > "$log" 2>&1; then
  tail -40 "$log" >&2
  echo "rollcall: the build failed; all of it is in $log" >&2
  exit 1
fi

run=("$build/bin/rollcall" run --sim "--hang-after=$hang_after" --on-hang=abort
  --report-dir=build/try-reports -- "${command[@]}")
echo "try: ${run[*]}"
rm -rf build/try-reports
exit_code=0
"${run[@]}" || exit_code=$?

report=$(find build/try-reports -mindepth 1 -maxdepth 1 -name "*-$cause" 2> /dev/null | head -n 1)
if [ "$exit_code" != 75 ] || [ -z "$report" ]; then
  echo "rollcall: expected a $cause and exit code 75, got exit code $exit_code" >&2
  exit 1
fi
echo
cat "$report/report.txt"
echo
echo "The report: $root/$report/report.html"
echo "From the start of this script to the verdict: $(($(date +%s) - begun)) s"
