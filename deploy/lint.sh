#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks what a machine checks better than people: the format of C and C++ (clang-format, with sorted
# includes), Python (ruff) and shell scripts (shellcheck). Checks the files that git tracks. Makes
# build/lint-venv with the tools that deploy/lint_requirements.txt pins.
#
#   deploy/lint.sh                    about 15 seconds
#   deploy/lint.sh PATH...            only what lies there
#   deploy/lint.sh --fix              mends what a machine can mend
#   deploy/lint.sh --tidy             and runs clang-tidy on the sources that changed since origin/main
#   deploy/lint.sh --tidy --since=REV             that changed since this revision
#   deploy/lint.sh --tidy=all                     on all sources: more than an hour on two cores
#   deploy/lint.sh --tidy --build=build/debug     with the commands of this build, not build/release
#
# Exit 0: nothing to mend. Exit 1: the output says what to mend, and what to type.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

fix=
tidy=
since=origin/main
build=build/release
paths=()
for argument in "$@"; do
  case $argument in
    --fix) fix=yes ;;
    --tidy) tidy=changed ;;
    --tidy=all) tidy=all ;;
    --since=*) since=${argument#*=} ;;
    --build=*) build=${argument#*=} ;;
    -*) fail "deploy/lint.sh: unknown argument $argument" \
      "deploy/lint.sh [--fix] [--tidy|--tidy=all] [--since=REV] [--build=DIR] [PATH...]" ;;
    *) paths+=("$argument") ;;
  esac
done

venv=build/lint-venv
requirements=deploy/lint_requirements.txt
# A hash of the inputs. If the inputs change, this script makes the environment anew.
wanted=$(sha256sum < "$requirements")
if ! has_environment "$venv" "$wanted"; then
  step "tools: build/lint-venv"
  make_environment "$venv"
  "$venv/bin/python" -m pip -qq --disable-pip-version-check --retries 1 install -r "$requirements" ||
    cannot_install "$requirements"
  echo "$wanted" > "$venv/rollcall-installed"
fi
export PATH="$root/$venv/bin:$PATH"

# tracked PATTERN...: the tracked files with these names, below the paths that were asked for.
tracked() { git ls-files -- "${paths[@]}" | grep -E "$1" || true; }

# scripts INTERPRETER: the tracked files whose first lines name it.
scripts() {
  git ls-files -z -- "${paths[@]}" |
    xargs -0 -r awk -v name="$1" 'FNR > 2 { nextfile }
      $0 ~ "^#!.*[/ ](" name ")[0-9.]*$" || $0 ~ "^# shellcheck shell=(" name ")$" { print FILENAME; nextfile }' |
    sort -u
}

# check TITLE LIST COMMAND...: runs the command with the files of the list, on all processors.
failed=
check() {
  local title=$1 list=$2
  shift 2
  [ -n "$list" ] || return 0
  step "$title"
  printf '%s\n' "$list" | xargs -d '\n' -r -n 40 -P "$(nproc)" "$@" || failed="$failed$title, "
}

sources=$(tracked '\.(c|cc|h)$')
python=$({ tracked '\.py$'; scripts python; } | sort -u)
shell=$(scripts 'sh|bash')
if [ -n "$fix" ]; then
  check clang-format "$sources" clang-format -i
  check ruff "$python" ruff check --quiet --fix
else
  check clang-format "$sources" clang-format --dry-run --Werror --ferror-limit=1
  check ruff "$python" ruff check --quiet
fi
check shellcheck "$shell" shellcheck

# Writes to build/tidy how to compile each file alone, with the generated headers of the build.
commands_of_each_file() {
  configure release -B build/tidy -DROLLCALL_UNITY=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
  sed -i "s|$root/build/tidy/|$root/$build/|g" build/tidy/compile_commands.json
}

if [ -n "$tidy" ]; then
  [ -f "$build/compile_commands.json" ] ||
    fail "clang-tidy needs a build, and there is no $build/compile_commands.json" \
      "cmake --preset release && cmake --build --preset release"
  if [ "$tidy" = changed ]; then
    base=$(git merge-base "$since" HEAD) || fail "git knows no revision $since" \
      "deploy/lint.sh --tidy --since=REV"
    sources=$(comm -12 <(printf '%s\n' "$sources" | sort) <(git diff --name-only --diff-filter=d "$base" | sort))
  fi
  commands_of_each_file
  sources=$(comm -12 <(printf '%s\n' "$sources" | sort) \
    <(grep -o '"file": "[^"]*"' build/tidy/compile_commands.json | cut -d '"' -f 4 | sed "s|^$root/||" | sort -u))
  check clang-tidy "$sources" clang-tidy -p build/tidy --quiet
fi

[ -z "$failed" ] || fail "to mend: ${failed%, }" \
  "what a machine can mend:  deploy/lint.sh --fix" \
  "the rest by hand"
