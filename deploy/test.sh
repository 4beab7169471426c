#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the required packages, builds everything, and runs all tests. Needs no
# terminal and no GPU. Works from any folder; a second run costs little.
#
#   deploy/test.sh                   the release build
#   deploy/test.sh --quick           unit tests only: about five minutes when all is built
#   deploy/test.sh --packages        also builds static programs and packages, and installs them
#   deploy/test.sh --portable        and runs the end-to-end tests with the programs of the packages, too
#   deploy/test.sh --end-within=MINUTES   says and leaves out which optional parts may end later:
#                                    for a time limit on a slow machine
#   deploy/test.sh --preset asan     with AddressSanitizer; also debug, tsan
#
# Prints the output of failed tests only. A test that fails runs once more; if it
# passes then, this script names it. The last line is "N passed, N failed".
# Exit 0: no test failed. Exit 1: a test or a step failed.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=release
quick=
packages=
portable=
within=
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name of CMakePresets.json}; shift 2 ;;
    --preset=*) preset=${1#*=}; shift ;;
    --quick) quick=yes; shift ;;
    --packages) packages=yes; shift ;;
    --portable) packages=yes; portable=yes; shift ;;
    --end-within=*)
      within=${1#*=}
      [[ $within =~ ^[0-9]+$ ]] || fail "deploy/test.sh: --end-within takes minutes, not '$within'" "deploy/test.sh --end-within=85"
      shift ;;
    *) fail "deploy/test.sh: unknown argument $1" "deploy/test.sh [--preset NAME] [--quick] [--packages] [--portable] [--end-within=MINUTES]" ;;
  esac
done
build=build/$preset
logs=$root/build/logs
totals=$logs/totals  # a line for each part: how many tests passed, and how many failed

# Says when each step began: a run that a time limit ends must tell which step took the time.
step() { printf '== %s (after %d min)\n' "$*" "$((SECONDS / 60))"; }

add_to_totals() { echo "$1 $2" >> "$totals"; }

finish() {
  step "done"
  awk '{ passed += $1; failed += $2 } END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 }' "$totals"
  exit
}

# Runs a step that the tests need, and ends the script if the step fails.
must() {
  if "$@"; then return 0; fi
  add_to_totals 0 1
  finish
}

# count FILE CODE: adds the results in a JUnit file to the totals, and prints them. CODE: with which the
# command ended. If that failed, and no test did, it crashed, or found no test.
count() {
  local good bad skipped
  read -r good bad skipped < <(python3 - "$1" <<'PY'
import sys, xml.etree.ElementTree as tree
try:
    cases = list(tree.parse(sys.argv[1]).iter("testcase"))
except (OSError, tree.ParseError):
    cases = []
def has(case, *names):
    return any(case.find(name) is not None for name in names)
skipped = sum(has(case, "skipped") for case in cases)
bad = sum(has(case, "failure", "error") for case in cases)
print(len(cases) - bad - skipped, bad, skipped)
PY
  )
  [ "$2" = 0 ] || [ "$bad" != 0 ] || bad=1
  add_to_totals "$good" "$bad"
  printf '   %d passed, %d failed' "$good" "$bad"
  [ "$skipped" = 0 ] || printf ', %d skipped' "$skipped"
  printf '\n'
}

# second_tries LOG...: names the tests that failed at the first try. ctest's log has a line "Failed"
# for such a test. pytest's log has a line "RERUN" (for tests under ctest, in LastTest.log).
second_tries() {
  sed -nE -e 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*\*\*\*(Failed|Timeout|Exception).*/\1/p' -e 's/^RERUN +//p' "$@" 2> /dev/null |
    sort -u | sed 's/^/   needed a second try: /' || true
}

# run_tests NAME COMMAND...: the command writes build/logs/NAME.xml.
run_tests() {
  local name=$1 code=0
  shift
  rm -f "$logs/$name.xml" "$build/Testing/Temporary/LastTest.log"
  quietly "$name.log" "$@" || code=$?
  count "$logs/$name.xml" "$code"
  second_tries "$logs/$name.log" "$build/Testing/Temporary/LastTest.log"
}

has_pytest_plugin() { "$(python_with_pytest)" -c "import $1" 2> /dev/null; }

# at_once NUMBER: the options with which pytest runs so many tests at once, 12 at most. None without pytest-xdist.
at_once() {
  if has_pytest_plugin xdist; then echo "-n $(($1 < 12 ? $1 : 12)) --dist=loadgroup"; fi
}

# optional_tests NAME MINUTES TITLE: runs tests/NAME/run.sh if deploy/setup_NAME.sh succeeds, and there is
# time: so many minutes on a slow machine. Otherwise prints the reason.
optional_tests() {
  local name=$1 minutes=$2 title=$3
  if [ -n "$within" ] && [ "$((SECONDS / 60 + minutes))" -ge "$within" ]; then
    step "$title LEFT OUT: it may take $minutes min, and so end after minute $within; to run it:  tests/$name/run.sh $build"
  elif deploy/setup_"$name".sh < /dev/null > "$logs/setup-$name.log" 2>&1; then
    step "$title"
    run_tests "$name-$preset" tests/"$name"/run.sh "$build" --junitxml="$logs/$name-$preset.xml"
  else
    step "$title LEFT OUT:"
    sed 's/^/   /' "$logs/setup-$name.log"
  fi
}

mkdir -p "$logs"
: > "$totals"
must deploy/setup.sh
step "configuring $build"
must configure "$preset"
step "building"
must quietly "build-$preset.log" cmake --build --preset "$preset"

# Print the whole output of failed tests.
export ROLLCALL_LOG_LINES=400
ctest=(ctest --preset "$preset" --no-tests=error)
# Tests of real processes have time limits, and other work may slow the machine down.
if has_pytest_plugin pytest_rerunfailures; then
  export PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} --reruns=1 -rR"
fi
# A test that hangs fails and says where. The limit is for each try, so it does not cover fixtures.
if has_pytest_plugin pytest_timeout; then
  export PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} --timeout=400 --override-ini=timeout_func_only=true"
fi
step "unit tests"
run_tests "unit-$preset" "${ctest[@]}" --repeat until-pass:2 -LE 'e2e|torch' -j $((2 * $(nproc))) \
  --output-junit "$logs/unit-$preset.xml"
if [ -n "$quick" ]; then
  step "LEFT OUT by --quick: browser tests, the site of the docs, end-to-end tests, PyTorch tests, packages"
  finish
fi
# Browsers wait for pages most of the time, and jobs that hang do so, too.
PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} $(at_once $((2 * $(nproc))))" optional_tests browser 8 "browser tests"
optional_tests site 2 "the site of the docs"
step "end-to-end tests"
many_at_once=$(at_once $((3 * $(nproc))))
PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} $many_at_once" \
  run_tests "e2e-$preset" "${ctest[@]}" -L e2e --output-junit "$logs/e2e-$preset.xml"
# These load PyTorch most of the time.
PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} $(at_once "$(nproc)")" optional_tests torch 22 "PyTorch tests"
# Beside the next two, because it waits most of the time. A group of its own (-m) ends with this script.
set -m
optional_tests slurm 6 "Slurm" > "$logs/slurm-part.log" 2>&1 &
slurm=$!
set +m
trap 'kill -- "-$slurm" 2> /dev/null || true' EXIT
# After the PyTorch tests: one of the packages uses their torch.
optional_tests packages 4 "packages of PyPI that load NCCL"
# Each file has an API server or a network of its own.
PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} $(at_once $(($(nproc) + 1))) --dist=loadfile" optional_tests kubernetes 6 "Kubernetes"
wait "$slurm" || add_to_totals 0 1
trap - EXIT
cat "$logs/slurm-part.log"
if [ -n "$packages" ]; then
  optional_tests install 40 "building packages, and their tests"
else
  step "LEFT OUT without --packages: wheel, deb, rpm, tgz and container image"
fi
if [ -n "$portable" ]; then
  step "end-to-end tests of the programs in the packages"
  # shellcheck disable=SC2086  # some words
  run_tests "portable-$preset" tests/install/portable_suite.sh "$build" $many_at_once \
    --junitxml="$logs/portable-$preset.xml"
else
  step "LEFT OUT without --portable: the end-to-end tests of the programs in the packages"
fi
finish
