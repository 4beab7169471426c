#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The long form of fuzzing: builds the targets with libFuzzer, runs them one after the other, and
# prints a table of what each did.
#
#   tests/fuzz/run.sh                          all targets with sanitizers, 60 s each
#   tests/fuzz/run.sh --fast                   without: many more inputs; see below
#   tests/fuzz/run.sh --seconds 600 tick       one target for ten minutes
#   tests/fuzz/run.sh --executions 1000000     a number of executions instead of a time
#   tests/fuzz/run.sh --no-build               the programs as they are
#   tests/fuzz/run.sh --minimise [TARGET...]   puts what was found into tests/fuzz/corpus/
#   tests/fuzz/run.sh --tally                  the sum of all runs so far
#
# --fast searches with a build that only counts edges (fast/). Then the build with sanitizers runs each
# new input once.
#
# In build/fuzz-state/: found/TARGET/ has the inputs that reached new code, broken/ those that broke a
# promise, log/ what libFuzzer printed, and tally a line for each run. An input may take 256 MB at once
# and 2 GB in all: more than any input justifies.
# Exit 0: nothing broke. Exit 1: an input broke a promise, or the build failed. Exit 2: bad usage.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/common.sh"

limit=-max_total_time=60
action=search
preset=fuzz
builds=1
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --fast) preset=fuzz-fast; shift ;;
    --seconds) limit=-max_total_time=${2:?--seconds needs a number}; shift 2 ;;
    --executions) limit=-runs=${2:?--executions needs a number}; shift 2 ;;
    --no-build) builds=; shift ;;
    --minimise) action=minimise; shift ;;
    --tally) action=sum_up; shift ;;
    -*) echo "tests/fuzz/run.sh: unknown argument $1; see the head of this file" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
  esac
done
if [ ${#targets[@]} = 0 ]; then
  for file in tests/fuzz/targets/*.cc; do targets+=("$(basename "$file" .cc)"); done
fi
for target in "${targets[@]}"; do
  [ -e "tests/fuzz/targets/$target.cc" ] && continue
  echo "tests/fuzz/run.sh: there is no target $target; see tests/fuzz/targets/" >&2
  exit 2
done

smallest_target='extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
state=build/fuzz-state
corpus=tests/fuzz/corpus
options=(-timeout=120 -rss_limit_mb=2048 -malloc_limit_mb=256)
export ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=12
export UBSAN_OPTIONS=print_stacktrace=1

count() { find "$@" -type f 2> /dev/null | wc -l; }
count_broken() { find $state/broken -name "$1-*" | wc -l; }

# Builds the targets with these presets, and writes the seeds.
build() {
  command -v clang++ > /dev/null || fail "clang++ is missing:" "apt-get install clang libclang-rt-14-dev"
  # Debian's package of clang recommends it only.
  clang++ -fsanitize=address,fuzzer -x c++ -o /dev/null - 2> /dev/null <<< "$smallest_target" ||
    fail "clang++ lacks libFuzzer or AddressSanitizer:" "apt-get install libclang-rt-14-dev"
  local preset
  for preset in "$@"; do
    [ -e "build/$preset/build.ninja" ] || quietly "configure-$preset.log" cmake --preset "$preset"
    quietly "build-$preset.log" cmake --build "build/$preset" --target "${targets[@]/#/fuzz_}"
  done
  quietly build-fuzz-seeds.log cmake --build build/fuzz --target fuzz_seeds
  rm -rf $state/seeds
  build/fuzz/fuzz/fuzz_seeds $state/seeds build/fuzz/fuzz/libfuzz_small*.so
}

# Unpacks what is known of a target.
prepare() {
  mkdir -p $state/log $state/broken
  for folder in found new kept seeds; do mkdir -p "$state/$folder/$1"; done
  [ ! -e "$corpus/$1.tar.gz" ] || tar -xzf "$corpus/$1.tar.gz" -C "$state/kept/$1"
  [ ! -d "$corpus/$1" ] || cp "$corpus/$1"/* "$state/kept/$1"
}

# The new inputs that the sanitizers accept become found ones. They reject the others, which stay in
# broken/.
check_new() {
  local target=$1
  rm -rf "$state/checked/$target"
  mkdir -p "$state/checked/$target"
  "build/fuzz/fuzz/fuzz_$target" -merge=1 "${options[@]}" "-artifact_prefix=$state/broken/$target-" \
    "$state/checked/$target" "$state/new/$target" > "$state/log/$target.check" 2>&1 || true
  find "$state/checked/$target" -type f -exec mv -t "$state/found/$target" {} +
  rm -rf "$state/new/$target"
}

# Prints a row of the table. False: something broke.
search() {
  local target=$1 log=$state/log/$1.log begin=$SECONDS result=ok seconds runs edges broken_before
  prepare "$target"
  broken_before=$(count_broken "$target")
  "build/$preset/fuzz/fuzz_$target" "${options[@]}" "$limit" -print_final_stats=1 -reload=0 \
    "-artifact_prefix=$state/broken/$target-" "$state/new/$target" "$state/found/$target" \
    "$state/kept/$target" "$state/seeds/$target" > "$log" 2>&1 || true
  seconds=$((SECONDS - begin))
  check_new "$target"
  runs=$(sed -nE 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  edges=$(sed -nE 's/^#[0-9]+.* cov: ([0-9]+) .*/\1/p' "$log" | tail -n 1)
  echo "$target ${runs:-0} $seconds ${edges:-0} $preset" >> $state/tally
  grep -q '^stat::number_of_executed_units' "$log" || result="BROKEN, see $log"
  [ "$broken_before" = "$(count_broken "$target")" ] || result="BROKEN, see $state/broken/"
  printf '%-14s %12s %8d %10d %8d %8s  %s\n' "$target" "${runs:-0}" "$seconds" \
    "$((${runs:-0} / (seconds > 0 ? seconds : 1)))" \
    "$(count "$state/found/$target" "$state/kept/$target")" "${edges:-0}" "$result"
  [ "$result" = ok ]
}

# Replaces the archive of a target by a small set of inputs that reaches all the code that the known
# inputs reach.
minimise() {
  local target=$1 merged=$state/merged/$1 archive=$PWD/$corpus/$1.tar.gz
  prepare "$target"
  rm -rf "$merged"
  mkdir -p "$merged"
  "build/fuzz/fuzz/fuzz_$target" -merge=1 -use_counters=0 "${options[@]}" \
    "-artifact_prefix=$state/broken/$target-" "$merged" \
    "$state/kept/$target" "$state/found/$target" "$state/seeds/$target" \
    > "$state/log/$target.merge" 2>&1
  find "$merged" -type f -printf '%f\n' | LC_ALL=C sort |
    tar -C "$merged" --owner=0 --group=0 --numeric-owner --mode=644 --mtime=@0 --format=ustar \
      -T - -cf - | gzip -9n > "$archive"
  printf '%-14s %5d inputs, %s\n' "$target" "$(count "$merged")" "$(du -h "$archive" | cut -f1)"
}

# Prints what all runs did.
sum_up() {
  printf '%-14s %14s %15s %9s %8s %8s\n' target executions "with sanitizers" seconds inputs edges
  local target
  for target in "${targets[@]}"; do
    awk -v target="$target" -v inputs="$(count "$state/found/$target" "$state/kept/$target")" '
      $1 == target { runs += $2; seconds += $3; if ($5 == "fuzz") checked += $2
                     if ($4 > edges) edges = $4 }
      END { print target, runs + 0, checked + 0, seconds + 0, inputs, edges + 0 }' $state/tally
  done | awk '{ printf "%-14s %14d %15d %9d %8d %8d\n", $1, $2, $3, $4, $5, $6
                for (i = 2; i <= 5; ++i) all[i] += $i }
              END { printf "%-14s %14d %15d %9d %8d\n", "all", all[2], all[3], all[4], all[5] }'
}

case $action in
  sum_up) sum_up ;;
  minimise)
    [ -z "$builds" ] || build fuzz
    for target in "${targets[@]}"; do minimise "$target"; done ;;
  search)
    [ -z "$builds" ] || build fuzz "$preset"
    printf '%-14s %12s %8s %10s %8s %8s  %s\n' target executions seconds "a second" inputs edges result
    broken=0
    for target in "${targets[@]}"; do search "$target" || broken=1; done
    exit $broken ;;
esac
