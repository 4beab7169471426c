#!/usr/bin/env bash
# Installs what is needed, builds everything, runs all tests. Works alone on a
# fresh machine.
#
#   deploy/test.sh [PRESET]      release (the default), debug, asan or tsan
#
# PyTorch's tests need PyPI; where it is out of reach they are left out, aloud.
# Exit 0: all tests that ran have passed.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
preset=${1:-release}
build=build/$preset
mkdir -p build
begun=$(date +%s)
passed=0
failed=0
left_out=""

step() { echo "test: $1 ($(($(date +%s) - begun)) s)"; }

# Runs a command quietly; shows the end of what it said if it fails.
quietly() {
  local log=build/$1.log
  shift
  if "$@" > "$log" 2>&1; then return 0; fi
  tail -n 60 "$log" >&2
  echo "rollcall: failed: $*  (all of it is in $log)" >&2
  return 1
}

# pytest_count LOG WORD: how many pytest says have "passed", "failed", ...
pytest_count() {
  grep -oE "[0-9]+ $2" "$1" | tail -n 1 | grep -oE '^[0-9]+' || echo 0
}

step "installing what is missing"
deploy/setup.sh
step "building ($preset)"
quietly "test-configure-$preset" cmake --preset "$preset"
quietly "test-build-$preset" cmake --build --preset "$preset"

step "running ctest"
if ! ctest --test-dir "$build" -j2 --output-on-failure > "build/test-ctest-$preset.log" 2>&1; then
  # What failed, with its output, and not the hundreds that passed.
  grep -vE '^ *([0-9]+/[0-9]+ Test|Start +[0-9]+:|Test project)' "build/test-ctest-$preset.log" |
    tail -n 150 >&2
fi
summary=$(grep -E 'tests passed, [0-9]+ tests? failed out of [0-9]+' "build/test-ctest-$preset.log" |
  tail -n 1 || true)
if [ -n "$summary" ]; then
  failed=$(sed -E 's/.*, ([0-9]+) tests? failed.*/\1/' <<< "$summary")
  passed=$(($(sed -E 's/.*out of ([0-9]+).*/\1/' <<< "$summary") - failed))
else
  echo "rollcall: ctest ran nothing" >&2
  failed=1
fi

if [ "$preset" = release ]; then
  step "running PyTorch's tests"
  if deploy/setup_torch.sh; then
    log=build/test-torch.log
    quietly test-torch tests/torch/run.sh "$build" || true
    passed=$((passed + $(pytest_count "$log" passed)))
    failed=$((failed + $(pytest_count "$log" failed) + $(pytest_count "$log" error)))
    if [ "$(pytest_count "$log" passed)" = 0 ]; then failed=$((failed + 1)); fi
  else
    left_out="tests/torch (PyTorch could not be installed: the reason is above)"
  fi
fi

step "done"
if [ -n "$left_out" ]; then echo "test: LEFT OUT: $left_out"; fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
