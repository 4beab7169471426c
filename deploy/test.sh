#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the required packages, builds everything, and runs tests: one of three sets, which are the same on
# every machine. Needs no terminal and no GPU. Works from any folder; a second run costs little.
#
#   deploy/test.sh                   the gate: what a change must pass
#   deploy/test.sh --quick           the unit tests of rules and other pure functions
#   deploy/test.sh --all             what the gate leaves out
#   deploy/test.sh --only=PART       one part of the set; repeatable
#   deploy/test.sh --without=PART    not this part, and the last lines say so; repeatable
#   deploy/test.sh --preset=asan     the gate's unit and end-to-end tests of another build; also debug, tsan
#   deploy/test.sh --help            lists the parts
#
# A part that cannot run fails. Prints the output of failed parts only; the output of each part is in build/logs.
# A pytest test that fails runs once more. If it passes then, the last lines name it, and build/second_tries.tsv
# counts it: each such test is a defect. The last line is "N passed, N failed".
# Exit 0: no test failed. Exit 1: a test or a step failed.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# GROUP: parts of one group run beside each other, and the groups one after another. RUN: a part of tests/run, or
# a command. JOBS: how many tests run at once for each processor; -: the part is no set of tests. LIMIT: minutes,
# after which a part has failed, on a machine of two cores. ARGUMENTS: variables, and arguments for RUN.
parts() {
  cat << 'TABLE'
SET   | GROUP | PART        | RUN            | JOBS | LIMIT | ARGUMENTS | WHAT
quick | 1     | unit        | unit           | 2    | 5     | -L quick | pure functions, and a small corpus
gate  | 1     | lint        | deploy/lint.sh | -    | 10    | | linters and formats
gate  | 2     | unit        | unit           | 2    | 15    | | unit tests, docs against programs, kept inputs of the fuzz targets
gate  | 3     | install     | install        | 0    | 20    | ROLLCALL_PACKAGE_KINDS='wheel deb' -m 'not long' | builds, installs and runs wheel and deb for this machine
gate  | 4     | e2e         | e2e            | 3    | 15    | -m 'not long' | real jobs: one for each cause and feature; PostgreSQL
gate  | 4     | slurm       | slurm          | 0    | 10    | -m 'not long' | a job on a real Slurm
gate  | 4     | browser     | browser        | 1    | 10    | -m 'not long' | jobs, an incident and a job on the page
gate  | 5     | torch       | torch          | 1    | 15    | -m 'not long' | the five hangs, with PyTorch
gate  | 5     | kubernetes  | kubernetes     | 0    | 10    | -m 'not long' | the chart, rendered, and the webhook
gate  | 5     | mcp         | mcp            | 0    | 10    | -m 'not long' | the MCP server, asked by the SDK's client
gate  | 5     | site        | site           | 0    | 10    | -m 'not long' | the site of the docs
gate  | 5     | stacks      | stacks         | 0    | 10    | -m 'not long' | stacks beside those of gdb and eu-stack
gate  | 6     | chaos       | chaos          | 0    | 10    | -m 'not long' | ten rounds of random faults
gate  | 7     | fleet       | fleet          | 0    | 10    | -m 'not long' | a daemon with 512 hosts
all   | 1     | install     | install        | 0    | 30    | -m long --ignore=tests/install/test_userlands.py --ignore=tests/install/test_previous.py | all packages for this machine
all   | 2     | userlands   | install        | 0    | 20    | tests/install/test_userlands.py | the packages in other distributions
all   | 3     | previous    | install        | 0    | 30    | tests/install/test_previous.py | beside programs of the release before
all   | 4     | aarch64     | aarch64        | 0    | 40    | | packages for aarch64, by qemu
all   | 5     | packaged    | packaged       | 3    | 30    | -m 'not long' | the end-to-end tests with the programs of the packages
all   | 6     | container   | container      | 2    | 20    | | jobs in namespaces as in a container
all   | 6     | slurm       | slurm          | 0    | 20    | -m long | the rest of the tests on a real Slurm
all   | 6     | browser     | browser        | 2    | 20    | -m long | the rest of the tests of the page
all   | 7     | e2e         | e2e            | 3    | 20    | -m long | the rest of the end-to-end tests
all   | 7     | stacks      | stacks         | 0    | 20    | -m long | stacks of many programs
all   | 7     | odd         | odd            | 1    | 15    | | odd programs, with and without the library: other allocators, Go, Rust, Java, .NET, Node
all   | 8     | torch       | torch          | 1    | 30    | -m long | the rest of the tests with PyTorch, and PyTorch's own
all   | 8     | kubernetes  | kubernetes     | 1    | 20    | -m long --dist=loadfile --ignore=tests/kubernetes/test_api_server.py | policy, events, several daemons
all   | 9     | frameworks  | frameworks     | 1    | 60    | | programs of many frameworks
all   | 9     | packages    | packages       | 0    | 15    | | packages of PyPI that load NCCL
all   | 9     | oneccl      | oneccl         | 0    | 15    | | real oneCCL, on the CPU
all   | 9     | torch24     | torch24        | 1    | 30    | | programs on gloo with PyTorch 2.4.1
all   | 10    | reported    | reported       | 1    | 30    | | hangs as people reported them, with PyTorch
all   | 10    | api-server  | api-server     | 0    | 30    | | chart and webhook with a real API server
all   | 10    | torch26     | torch26        | 1    | 30    | | PyTorch 2.6.0's own tests of gloo
all   | 10    | torch28     | torch28        | 1    | 30    | | programs on gloo with PyTorch 2.8.0
all   | 11    | torch214    | torch214       | 1    | 30    | | programs on gloo with PyTorch 2.14.1
all   | 11    | chaos       | chaos          | 0    | 20    | ROLLCALL_CHAOS_ROUNDS=60 ROLLCALL_CHAOS_SEED=1 | sixty rounds of random faults
all   | 12    | fleet       | fleet          | 0    | 25    | ROLLCALL_FLEET_LONG=1 -k jobs | a daemon with a thousand jobs, and with those of a day
all   | 13    | standstill  | standstill     | 2    | 40    | | programs that hang outside of every recorded call, and ordinary ones like them
all   | 14    | fuzz        | fuzz           | -    | 40    | --seconds 10 | ten seconds of new inputs for each reader
TABLE
}

usage() {
  print_head
  local set
  for set in quick gate all; do
    printf '\n%s:\n' "$set"
    parts | awk -F ' *[|] *' -v set=$set '$1 == set { printf "  %-11s %s (at most %d min)\n", $3, $8, $6 }'
  done
}

preset=release set=gate
only=() without=()
for argument in "$@"; do
  case $argument in
    --quick) set=quick ;;
    --all) set=all ;;
    --only=?*) only+=("${argument#*=}") ;;
    --without=?*) without+=("${argument#*=}") ;;
    --preset=?*) preset=${argument#*=} ;;
    -h | --help) usage; exit ;;
    *) fail "deploy/test.sh: unknown argument $argument" "deploy/test.sh --help" ;;
  esac
done
build=$root/build/$preset
logs=$root/build/logs
tries=$root/build/second_tries.tsv  # date, commit, part, test

# Says when each step began: a run that a time limit ends must tell which step took the time.
step() { printf '== %s (after %d min)\n' "$*" "$((SECONDS / 60))"; }

has() {  # has WORD WORDS...
  local word=$1 other
  shift
  for other in "$@"; do [ "$word" != "$other" ] || return 0; done
  return 1
}

# The rows of the chosen parts, without spaces around the bars; the names in $names.
mapfile -t rows < <(parts | sed 's/ *| */|/g' | grep "^$set|")
# Programs with a sanitizer are too slow for what has limits of time, and cannot be loaded into others' programs.
case $preset in
  release) ;;
  tsan) only=(unit) ;;
  *) only=(unit e2e) ;;
esac
mapfile -t names < <(printf '%s\n' "${rows[@]}" | cut -d '|' -f 3)
for name in "${only[@]}" "${without[@]}"; do
  has "$name" "${names[@]}" || fail "deploy/test.sh: there is no part $name in this set" "deploy/test.sh --help"
done
chosen=()
for name in "${names[@]}"; do
  if { [ ${#only[@]} = 0 ] || has "$name" "${only[@]}"; } && ! has "$name" "${without[@]}"; then chosen+=("$name"); fi
done
[ ${#chosen[@]} -gt 0 ] || fail "deploy/test.sh: no part is left" "deploy/test.sh --help"

passed=0 failed=0
failures=() second=()
fail_part() {
  failed=$((failed + 1))
  failures+=("$1: $2")
}

finish() {
  trap - EXIT
  step "done"
  local line
  for line in "${failures[@]}"; do echo "   FAILED: $line"; done
  for line in "${second[@]}"; do echo "   needed a second try: $line"; done
  [ ! -s "$tries" ] || echo "   second tries over all runs, in build/second_tries.tsv: $(wc -l < "$tries")"
  for line in "${without[@]}"; do echo "   LEFT OUT by --without: $line"; done
  [ ${#only[@]} = 0 ] || echo "   only these parts of the set: ${chosen[*]}"
  printf '%d passed, %d failed\n' "$passed" "$failed"
  exit $((failed > 0))
}

# Runs a step that the tests need, and ends the script if the step fails.
must() {
  if "$@"; then return 0; fi
  fail_part "set-up" "$*"
  finish
}

# Prints how many tests of a JUnit file passed, failed and were skipped, and then the names of those that failed.
# A test of ctest that is a program of GoogleTest counts as its tests, which are in build/PRESET/results.
results() {
  python3 - "$1" "$build/results" << 'PY'
import pathlib, sys, xml.etree.ElementTree as tree
def read(file):
    try:
        return list(tree.parse(file).iter("testcase"))
    except (OSError, tree.ParseError):
        return []
def having(cases, *names):
    return [case for case in cases if any(case.find(name) is not None for name in names)]
def tests_of(case):
    tests = read(pathlib.Path(sys.argv[2]) / f"{case.get('name')}.xml")
    crashed = having([case], "failure", "error") and not having(tests, "failure", "error")
    return tests + [case] if crashed or not tests else tests
cases = [test for case in read(sys.argv[1]) for test in tests_of(case)]
bad, skipped = having(cases, "failure", "error"), having(cases, "skipped")
print(len(cases) - len(bad) - len(skipped), len(bad), len(skipped))
for case in bad:
    print(case.get("classname"), case.get("name"))
PY
}

# The tests of pytest's output that passed only when they ran again.
second_tries() {
  awk '/^(FAILED|ERROR) / { sub(/^[A-Z]+ +/, ""); sub(/ - .*/, ""); bad[$0] = 1 }
       /^RERUN / { sub(/^RERUN +/, ""); again[$0] = 1 }
       END { for (test in again) if (!(test in bad)) print test }' "$1" | sort
}

# Sets the variables from a row.
read_row() { IFS='|' read -r _ group part run jobs limit arguments _ <<< "$1"; }

# start ROW: runs the part in the background. A hang costs the part's limit.
declare -A part_of=() began=() jobs_of=()
start() {
  read_row "$1"
  local words=() variables=() command=("$run") options=()
  eval "words=($arguments)"
  while [[ ${words[0]:-} == *([A-Z_])=* ]]; do
    variables+=("${words[0]}")
    words=("${words[@]:1}")
  done
  if [[ $run != */* ]]; then
    command=(tests/run "--build=$build" "$run")
    rm -f "$logs/test-$part.xml"
    case $run:$jobs in
      *:-) ;;
      unit:*)
        rm -rf "$build/results"
        options=(-j "$((jobs * $(nproc)))" --output-junit "$logs/test-$part.xml") ;;
      *)
        options=("--junitxml=$logs/test-$part.xml" --reruns=1)
        # Twelve at most: more of them would wait for memory.
        if [ "$jobs" != 0 ]; then
          jobs=$((jobs * $(nproc)))
          options+=(-n "$((jobs < 12 ? jobs : 12))" --dist=loadgroup)
        fi ;;
    esac
  fi
  timeout --kill-after=30 "${limit}m" env "${variables[@]}" "${command[@]}" "${options[@]}" "${words[@]}" \
    < /dev/null > "$logs/test-$part.log" 2>&1 &
  part_of[$!]=$part began[$!]=$SECONDS jobs_of[$!]=$jobs
}

# await: waits until one of the started parts has ended, and prints its results.
await() {
  local pid='' code=0 name seconds log good=0 bad=0 skipped=0 test lines=()
  wait -n -p pid "${!part_of[@]}" || code=$?
  name=${part_of[$pid]} seconds=$((SECONDS - began[$pid])) log=$logs/test-${part_of[$pid]}.log
  mapfile -t lines < <(results "$logs/test-$name.xml")
  read -r good bad skipped <<< "${lines[0]}"
  [ "${jobs_of[$pid]}" != - ] || good=$((code == 0))
  unset "part_of[$pid]" "began[$pid]" "jobs_of[$pid]"
  passed=$((passed + good))
  for test in "${lines[@]:1}"; do fail_part "$name" "$test"; done
  # A part that ends with an error though no test failed has crashed or hung.
  if [ "$code" != 0 ] && [ "$bad" = 0 ]; then
    bad=1
    case $code in
      124 | 137) fail_part "$name" "did not end in time" ;;
      *) fail_part "$name" "ended with exit code $code" ;;
    esac
  elif [ "$good" = 0 ] && [ "$bad" = 0 ]; then
    bad=1
    fail_part "$name" "ran no test"
  fi
  printf '   %s: %d passed, %d failed, %d skipped in %d min %d s\n' \
    "$name" "$good" "$bad" "$skipped" $((seconds / 60)) $((seconds % 60))
  sed -n 's/^SKIPPED /      skipped: /p' "$log"
  while read -r test; do
    second+=("$name: $test")
    printf '%s\t%s\t%s\t%s\n' "$(date -u +%FT%TZ)" "$(git rev-parse --short HEAD 2> /dev/null || echo -)" "$name" "$test" >> "$tries"
  done < <(second_tries "$log")
  if [ "$bad" != 0 ]; then
    tail -n 400 "$log"
    echo "   the whole output of $name:  $log"
  fi
}

shopt -s extglob
mkdir -p "$logs"
must deploy/setup.sh
step "configuring build/$preset"
must configure "$preset"
step "building"
must quietly "build-$preset.log" cmake --build --preset "$preset"

step "setting up what the parts need"
ready=()
for row in "${rows[@]}"; do
  read_row "$row"
  has "$part" "${chosen[@]}" || continue
  if [[ $run == */* ]] || quietly "set-up-$part.log" tests/run --set-up "$run"; then
    ready+=("$row")
  else
    fail_part "$part" "cannot be set up; to leave it out:  --without=$part"
  fi
done

# timeout passes the signal on to all that the part has started.
trap '[ ${#part_of[@]} = 0 ] || kill "${!part_of[@]}" 2> /dev/null || true' EXIT
most=$(($(nproc) + 1))  # of the parts that run beside each other, because they wait most of the time
while [ ${#ready[@]} -gt 0 ]; do
  read_row "${ready[0]}"
  this=$group rest=() beside=()
  for row in "${ready[@]}"; do
    read_row "$row"
    if [ "$group" = "$this" ]; then beside+=("$row"); else rest+=("$row"); fi
  done
  step "$(printf '%s\n' "${beside[@]}" | cut -d '|' -f 3 | paste -sd ' ')"
  for row in "${beside[@]}"; do
    [ ${#part_of[@]} -lt "$most" ] || await
    start "$row"
  done
  while [ ${#part_of[@]} -gt 0 ]; do await; done
  ready=("${rest[@]}")
done
finish
