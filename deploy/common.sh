# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions that the scripts in deploy/ share. Source this file; do not run it.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

step() { printf '== %s\n' "$*"; }

# Prints the comment at the head of the script that runs.
print_head() { awk 'NR > 2 && !/^#/ { exit } NR > 2 { sub(/^# ?/, ""); print }' "$0"; }

# fail WHAT [NEXT...]: prints the failure and the lines to type next, and exits with 1.
fail() {
  printf 'rollcall: %s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}

# quietly LOG COMMAND...: runs the command and writes its output to build/logs/LOG. Prints the end
# of the output if the command fails.
quietly() {
  local log=$root/build/logs/$1
  shift
  mkdir -p "$root/build/logs"
  if "$@" > "$log" 2>&1 < /dev/null; then return 0; fi
  tail -n "${ROLLCALL_LOG_LINES:-60}" "$log" >&2
  printf 'rollcall: failed: %s\n  the whole output:  %s\n' "$*" "$log" >&2
  return 1
}

# Runs a command as root. sudo asks for a password on a terminal only.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif [ -t 0 ]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

# missing_packages FILE: prints those packages of Debian that a list like deploy/packages.txt names
# and that are not installed.
missing_packages() {
  local package
  sed -e 's/#.*//' "$1" | awk 'NF { print $1 }' | while read -r package; do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2> /dev/null) in
      ii* | hi*) ;;
      *) echo "$package" ;;
    esac
  done
}

# Updates the package lists once. Goes on if a mirror does not answer: the lists may be new enough.
lists_are_new=
update_lists() {
  [ -z "$lists_are_new" ] || return 0
  quietly apt-update.log as_root apt-get update -qq || true
  lists_are_new=1
}

# install_packages FILE: installs those that missing_packages prints.
install_packages() {
  local missing
  missing=$(missing_packages "$1" | tr '\n' ' ')
  if [ -z "$missing" ]; then
    step "packages: all are installed"
    return
  fi
  local by_hand="apt-get update && apt-get install --no-install-recommends $missing"
  if [ "$(id -u)" != 0 ] && ! command -v sudo > /dev/null; then
    fail "packages are missing, and only root can install them (there is no sudo); as root, type:" \
      "$by_hand"
  fi
  step "packages: installing $missing"
  if [ "$(id -u)" != 0 ] && [ -t 0 ]; then sudo -v || true; fi
  update_lists
  # shellcheck disable=SC2086  # one word a package
  quietly apt-install.log as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y \
    --no-install-recommends -o DPkg::Lock::Timeout=300 $missing ||
    fail "apt-get could not install the packages; as root, type:" "$by_hand"
}

# download_sources LOG FOLDER NAME...: fetches Debian's source packages into the folder, those of the release
# $of_release or of this system's, by Debian's signed index. Changes no setting of the system.
download_sources() {
  local log=$root/build/logs/$1 folder=$2 release mirror apt
  shift 2
  release=${of_release:-$(. /etc/os-release && echo "${VERSION_CODENAME:-}")}
  [ -n "$release" ] || fail "the sources of $* come from a release of Debian, and this system names none"
  # The mirror of this system, so that a site's own mirror is used.
  mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2> /dev/null |
    head -n 1 | tr -d ' ' || true)
  [ -n "$mirror" ] ||
    fail "apt's settings name no mirror of Debian, from which the sources of $* come" \
      "add one to /etc/apt/sources.list"
  apt=$folder/apt
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root/build/logs"
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" > "$apt/sources.list"
  local get=(apt-get -q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
             -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  (cd "$folder" && "${get[@]}" update && "${get[@]}" source --download-only "$@") > "$log" 2>&1 ||
    fail "cannot fetch the sources of $* ($log)" "check the network, then:  $0"
  rm -rf "$apt"
}

# Prints the Python that makes virtual environments: $PYTHON, else the system's. The first Python on
# the path may be a version manager's shell script.
system_python() {
  if [ -n "${PYTHON:-}" ]; then
    echo "$PYTHON"
  elif [ -x /usr/bin/python3 ]; then
    echo /usr/bin/python3
  else
    echo python3
  fi
}

# has_environment VENV WANTED: whether the virtual environment works and has this stamp.
has_environment() {
  [ "$(cat "$1/rollcall-installed" 2> /dev/null)" = "$2" ] && "$1/bin/python" -c '' 2> /dev/null
}

# make_environment VENV [OPTION...]: makes the virtual environment anew.
make_environment() {
  local venv=$1 python
  shift
  python=$(system_python)
  rm -f "$venv/rollcall-installed"
  "$python" -c 'import ensurepip, venv' 2> /dev/null ||
    fail "$python cannot make virtual environments" \
      "on Debian and Ubuntu:  apt-get install python3-venv"
  "$python" -m venv --clear "$@" "$venv"
}

# cannot_install REQUIREMENTS: fails because pip could not install them. $part: that of deploy/setup_parts.sh.
cannot_install() {
  fail "cannot install what $1 lists" \
    "if PyPI does not answer, with the wheels in a folder:  PIP_NO_INDEX=1 PIP_FIND_LINKS=/DIR deploy/${0##*/} ${part:-}"
}

# Prints the first Python that has pytest. The Python on the path may belong to a version manager
# and lack the packages of the system's Python.
python_with_pytest() {
  local python
  for python in ${PYTHON:-} /usr/bin/python3 python3; do
    if "$python" -c 'import pytest' 2> /dev/null; then
      echo "$python"
      return 0
    fi
  done
  return 1
}

# configure PRESET [OPTION...]: runs cmake for this preset.
configure() {
  local python preset=$1
  shift
  python=$(python_with_pytest) || fail "found no Python with pytest" \
    "on Debian and Ubuntu:  apt-get install python3-pytest"
  quietly "configure-$preset.log" cmake --preset "$preset" -DBUILD_TESTING=ON -DPython3_EXECUTABLE="$python" "$@"
}
