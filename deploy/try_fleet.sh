#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows on one machine that an incident outlives its daemon: a PostgreSQL server, three
# daemons on it, ten agents and a job of ten ranks that hangs. Kills the daemon that owns
# the job, and prints which one has taken over, and when. Needs the programs of
# build/release: deploy/try.sh --fleet builds them, and then runs this.
#
#   deploy/try_fleet.sh [--agents=N] [--build=FOLDER] [--without-namespaces]
#
# Each agent and its rank are a host: pid, network, name and mounts of their own. Where
# this system permits no such namespaces, or with --without-namespaces, agents have only a
# name and a folder of their own.
# Nothing stays behind but the logs and reports, in build/try-fleet-*.
#
# Exit 0: the incident lives on, under its id and with one alert. Exit 1: it does not, or a
# step failed; the last lines give the reason.
set -euo pipefail
# shellcheck source=deploy/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

agents=10
build=$root/build/release
is_inside=  # of the namespaces
why="this system permits no namespaces, or has no ip command"
given=("$@")
for argument in "$@"; do
  case $argument in
    --agents=*) agents=${argument#*=} ;;
    --build=*) build=$(cd "${argument#*=}" && pwd) || fail "deploy/try_fleet.sh: no folder ${argument#*=}" ;;
    --without-namespaces) why="--without-namespaces" ;;
    --inside) is_inside=1 ;;
    *) fail "deploy/try_fleet.sh: unknown argument $argument" \
      "deploy/try_fleet.sh [--agents=N] [--build=FOLDER] [--without-namespaces]" ;;
  esac
done
[[ $agents =~ ^[0-9]+$ && $agents -ge 2 && $agents -le 200 ]] ||
  fail "deploy/try_fleet.sh: --agents takes a number from 2 to 200, not '$agents'" "deploy/try_fleet.sh --agents=10"

programs=$build/bin
victim=$build/tests/one_rank_stops_calling
job=train
lease_seconds=6  # a daemon that says nothing for so long has lost its jobs
patience=120     # seconds for each step, on a slow machine

# --- Namespaces.

# Prints the command that makes the network in which all of this runs, or nothing.
find_outer_namespace() {
  local try='ip link set lo up && ip link add try type veth peer name try-peer &&
    unshare --pid --net --uts --mount --fork --mount-proc true'
  local outer
  for outer in "unshare --net --mount" "unshare --user --map-root-user --net --mount"; do
    # shellcheck disable=SC2086  # words
    if $outer sh -c "$try" > /dev/null 2>&1; then
      echo "$outer"
      return
    fi
  done
}

if [ -z "$is_inside" ] && [ "$why" != --without-namespaces ]; then
  outer=$(find_outer_namespace)
  # shellcheck disable=SC2086  # words
  if [ -n "$outer" ]; then exec $outer "${BASH_SOURCE[0]}" "${given[@]}" --inside; fi
fi

# --- What was started, and its end.

declare -A daemon_pid daemon_address
declare -A log_of  # of each pid that must live
host_pids=() program_pids=()
server_pid=
# For the sockets, whose paths have 107 characters at most, and the database.
folder=$(mktemp -d "${TMPDIR:-/tmp}/rollcall-fleet-XXXXXX")
mkdir -p "$root/build"
logs=$(mktemp -d "$root/build/try-fleet-XXXXXX")

end_all() {
  trap '' INT TERM
  # A host's first process takes all of its processes along.
  [ "${#host_pids[@]}" = 0 ] || kill -KILL "${host_pids[@]}" 2> /dev/null || true
  [ "${#program_pids[@]}" = 0 ] || kill -TERM "${program_pids[@]}" 2> /dev/null || true
  [ "${#program_pids[@]}" = 0 ] || wait "${program_pids[@]}" 2> /dev/null || true
  if [ -n "$server_pid" ]; then
    kill -INT "$server_pid" 2> /dev/null || true
    wait "$server_pid" 2> /dev/null || true
  fi
  rm -rf "$folder"
}
trap end_all EXIT
trap 'printf "rollcall: a step failed: %s\n" "$BASH_COMMAND" >&2' ERR
trap 'exit 130' INT
trap 'exit 143' TERM

# start LOG COMMAND...: in the background; its pid is $started then.
start() {
  "${@:2}" > "$logs/$1.log" 2>&1 < /dev/null &
  started=$!
  log_of[$started]=$1
}

# give_up WHAT [LOG]
give_up() {
  [ -z "${2:-}" ] || tail -n 20 "$logs/$2.log" >&2
  fail "$1" "all logs:  $logs"
}

# Notices a program that has ended by itself.
check_programs() {
  local pid
  for pid in "${!log_of[@]}"; do
    kill -0 "$pid" 2> /dev/null || give_up "${log_of[$pid]} has ended" "${log_of[$pid]}"
  done
}

# wait_until WHAT COMMAND...: until the command succeeds.
wait_until() {
  local until=$((SECONDS + patience))
  until "${@:2}"; do
    check_programs
    [ "$SECONDS" -lt "$until" ] || give_up "waited $patience s in vain: $1"
    sleep 0.2
  done
}

now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
seconds_since() { awk -v ms=$(($(now_ms) - $1)) 'BEGIN { printf "%.1f s", ms / 1000 }'; }

# --- PostgreSQL.

postgres=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -t/ -k5n | tail -n 1)
[ -x "$postgres/initdb" ] || fail "found no PostgreSQL server" "as root:  apt-get install postgresql"
database="postgresql://rollcall@/rollcall?host=$folder"

# The server refuses root. Under root it is that of the user nobody; root of a user namespace may have
# no other user, and calls itself one.
as_no_root() {
  if [ "$EUID" != 0 ]; then
    exec "$@"
  elif setpriv --reuid=65534 --regid=65534 --clear-groups true 2> /dev/null; then
    exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
  else
    exec unshare --user --map-user=65534 --map-group=65534 "$@"
  fi
}

ask_database() { "$postgres/psql" -XAtq -h "$folder" -U rollcall -d "${2:-rollcall}" -c "$1" 2> /dev/null; }

# Whoever may open the socket in the folder, which is this user's alone, may use the database.
start_postgres() {
  chown 65534:65534 "$folder" 2> /dev/null || true
  (cd / && as_no_root "$postgres/initdb" "--pgdata=$folder/data" --username=rollcall --encoding=UTF8 \
    --no-locale --no-sync --auth=trust) > "$logs/initdb.log" 2>&1 < /dev/null || give_up "initdb failed" initdb
  cd /
  start postgres as_no_root "$postgres/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= \
    -c shared_buffers=16MB -c fsync=off
  server_pid=$started
  cd "$root"
  wait_until "PostgreSQL answers" ask_database "SELECT 1" postgres > /dev/null
  ask_database "CREATE DATABASE rollcall" postgres
}

# --- Daemons.

start_daemon() {
  local name=$1 listen=127.0.0.1:0 open=()
  # Nobody outside reaches the hosts' network.
  if [ -n "$is_inside" ]; then listen=10.77.0.1:0 open=(--insecure); fi
  start "$name" "$programs/rollcalld" --config=none "--listen=$listen" --http=none "${open[@]}" \
    --hang-after=5s "--report-dir=$logs/$name" "--store=$database" "--daemon-name=$name" \
    "--alert=exec=(cat; echo) >> $logs/alerts"
  daemon_pid[$name]=$started
  program_pids+=("$started")
}

is_up() { grep -qs 'agents on ' "$logs/$1.log"; }
learn_address() { daemon_address[$1]=$(sed -nE 's/.*agents on ([0-9.]+:[0-9]+).*/\1/p' "$logs/$1.log" | head -n 1); }
all_are_alive() { [ "$(ask_database "SELECT count(*) FROM rollcall.daemons WHERE expires_at > now()")" = 3 ]; }

# --- Hosts: an agent and a rank each.

# The first process of a host: the only child of its unshare.
first_process() { tr -d ' ' < "/proc/${host_pids[$1 - 1]}/task/${host_pids[$1 - 1]}/children"; }

# on_host N COMMAND...: a program of the host.
on_host() {
  if [ -n "$is_inside" ]; then
    exec nsenter "--target=$(first_process "$1")" --pid --mount --net --uts -- "${@:2}"
  fi
  exec "${@:2}"
}

make_host() {
  mkdir -p "$folder/node-$1"
  chmod 700 "$folder/node-$1"
  if [ -z "$is_inside" ]; then return; fi
  start "node-$1" unshare --pid --net --uts --mount --fork --mount-proc --kill-child -- \
    sh -c 'hostname "$1" && echo up && exec sleep infinity' sh "node-$1"
  host_pids+=("$started")
  wait_until "node-$1 is up" grep -qs up "$logs/node-$1.log"
  ip link add "to-node-$1" type veth peer name eth0 netns "$(first_process "$1")"
  ip address add "10.77.$1.1/30" dev "to-node-$1"
  ip link set "to-node-$1" up
  (on_host "$1" sh -c "ip link set lo up && ip address add 10.77.$1.2/30 dev eth0 && ip link set eth0 up &&
    ip route add default via 10.77.$1.1")
}

start_agent() {
  local scope=directory
  [ -z "$is_inside" ] || scope=host
  start "agent-$1" on_host "$1" "$programs/rollcall-agent" --config=none "--daemon=$all_daemons" \
    "--dir=$folder/node-$1" "--scope=$scope" "--host=node-$1" --host-facts=off
  program_pids+=("$started")
}

start_rank() {
  start "rank-$(($1 - 1))" on_host "$1" env "LD_PRELOAD=$build/lib/librollcall.so" \
    "LD_LIBRARY_PATH=$build/sim" "ROLLCALL_DIR=$folder/node-$1" "ROLLCALL_JOB=$job" "RANK=$(($1 - 1))" \
    "WORLD_SIZE=$agents" LOCAL_RANK=0 "ROLLCALL_TEST_ID_FILE=$folder/id" "$victim"
  program_pids+=("$started")
}

# --- What is known about the job.

find_owner() { ask_database "SELECT daemon FROM rollcall.owners WHERE job = '$job'"; }
has_new_owner() { owner=$(find_owner) && [ -n "$owner" ] && [ "$owner" != "$killed" ]; }
count_alerts() { cat "$logs/alerts" 2> /dev/null | grep -c '"status":' || true; }
is_announced() { [ "$(count_alerts)" -ge 1 ] && [ "$(ask_database "SELECT count(*) FROM rollcall.outbox WHERE sent > 0")" = 1 ]; }

# ask DAEMON COMMAND WORDS...: the lines "WORD WORD..." of a list that the daemon prints as JSON.
ask() {
  "$programs/rollcall" "$2" "--daemon=${daemon_address[$1]}" --format=json 2> /dev/null | python3 -c '
import json, sys
command, *words = sys.argv[1:]
for row in json.load(sys.stdin)[{"status": "jobs"}.get(command, command)]:
    print(*(row[word] for word in words))' "${@:2}" 2> /dev/null || true
}
says() { [ "$(ask "$1" status name state)" = "$job hung" ] && [ "$(ask "$1" incidents id state)" = "$incident confirmed" ]; }

first_alert() {
  python3 -c 'import json, sys; print(json.loads(open(sys.argv[1]).readline())["'"$1"'"])' "$logs/alerts"
}

# --- The play.

for file in "$programs/rollcall" "$programs/rollcalld" "$programs/rollcall-agent" "$victim"; do
  [ -x "$file" ] || fail "$file is missing" "deploy/try.sh --fleet builds it"
done
if [ -n "$is_inside" ]; then
  ip link set lo up
  ip address add 10.77.0.1/32 dev lo
  where="each in pid and network namespaces of its own"
else
  where="each with a name and a folder of its own ($why)"
fi
step "logs and reports:  $logs"
step "starting PostgreSQL, three daemons, and $agents agents, $where"
start_postgres
# The first one makes the tables.
for name in daemon-1 daemon-2 daemon-3; do start_daemon "$name"; done
for name in daemon-1 daemon-2 daemon-3; do
  wait_until "$name is up; its log is $logs/$name.log" is_up "$name"
  learn_address "$name"
done
wait_until "all daemons are on the database" all_are_alive
all_daemons=${daemon_address[daemon-1]},${daemon_address[daemon-2]},${daemon_address[daemon-3]}
for ((n = 1; n <= agents; n++)); do
  make_host "$n"
  start_agent "$n"
done

step "starting a job of $agents ranks, one on each host; rank $((agents - 1)) will stop calling"
for ((n = 1; n <= agents; n++)); do start_rank "$n"; done
wait_until "one alert about the hang" is_announced
incident=$(first_alert incident)
killed=$(find_owner)
printf '   incident %s of %s:\n   %s\n' "$incident" "$killed" "$(first_alert summary)"

step "killing $killed (kill -9 of process ${daemon_pid[$killed]}); its lease ends in $lease_seconds s at most"
unset "log_of[${daemon_pid[$killed]}]"
at=$(now_ms)
kill -KILL "${daemon_pid[$killed]}"
wait "${daemon_pid[$killed]}" 2> /dev/null || true
wait_until "another daemon takes the job" has_new_owner
printf '   %s has taken the job %s after the kill\n' "$owner" "$(seconds_since "$at")"
for name in daemon-1 daemon-2 daemon-3; do
  [ "$name" != "$killed" ] || continue
  wait_until "$name shows the job as hung, and the incident $incident" says "$name"
  printf '   %s shows the job as hung, and the same incident, after %s\n' "$name" "$(seconds_since "$at")"
done
sleep 5  # a second alert would come now

alerts=$(count_alerts)
[ "$alerts" = 1 ] || give_up "$alerts alerts came, not one; they are in $logs/alerts"
says "$owner" || give_up "the incident $incident has changed: $(ask "$owner" incidents id state)"
step "the incident lives on: $incident, now of $owner, with one alert"
