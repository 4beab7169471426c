#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Questions over a long history in PostgreSQL: how long a real daemon takes to answer, and by which plans.

    /usr/bin/python3 tests/bench/history_questions.py [BUILD_DIR] [--rows=10000000] [--folder=DIR]

Starts a PostgreSQL server of its own in a folder, fills it with this many incidents of the last 26 weeks
(2,000 hosts, 16,000 GPUs, 20 tenants, 3,000 jobs, 12 causes), lets the daemon count the weeks, and asks by
HTTP what the page asks. Ten million need about 35 GB of disk and half an hour. Needs postgresql (Debian).
Ends with 1 if a question takes longer than a second, or reads a whole table.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

PROGRAMS = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), default=None,
               key=lambda path: int(path.parent.name))
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
WEEK_S = 7 * 86400
FIRST_MONDAY_S = -3 * 86400
WEEKS = 26
WANTED_S = 1.0
JOB = "job-100"  # of team-0; has about one in 1,100 of all incidents
ROUNDS = 5

# One incident of each number, with the facts that a query asks for. Some hosts, causes and tenants
# come back much more often than others.
INCIDENTS = """
CREATE TEMP TABLE made AS
SELECT 'job-' || job || '-' || n AS id, {begin}::bigint + (n - {first}) * ({width}::bigint / {count}) AS opened_ns,
       'team-' || tenant AS tenant, 'job-' || job AS job, n, 'cause_' || cause AS cause,
       'node-' || host AS host, 'GPU-' || md5((host * 8 + gpu)::text) AS gpu, (1000 + job % 300)::text AS uid,
       (ARRAY['Megatron-LM', 'DeepSpeed', 'PyTorch', 'Lightning', 'NeMo'])[1 + job % 5] AS framework,
       'train.py:' || site || ' in step_' || site % 40 AS site, 'leaf-' || host / 32 AS switch,
       (n % 3 = 0)::int AS certain, (1 + n % 64) * 8 * 60000 * (1 + n % 7) AS lost
FROM (SELECT n, floor(2000 * random() ^ 2)::int AS host, floor(8 * random())::int AS gpu,
             floor(12 * random() ^ 2)::int AS cause, floor(3000 * random() ^ 2)::int AS job,
             floor(400 * random() ^ 2)::int AS site
      FROM generate_series({first}, {first} + {count} - 1) AS n) AS random_ones,
     LATERAL (SELECT job % 20 AS tenant) AS t;
ANALYZE made;
"""

FACTS = """
CREATE TABLE {name} (LIKE incident_facts);
INSERT INTO {name} SELECT kind, opened_ns, value, id, tenant, cause, certain, lost FROM made,
LATERAL (VALUES ('host', host), ('gpu', gpu), ('user', uid), ('framework', framework), ('call_site', site),
                ('label:switch', switch), ('cause', cause), ('tenant', tenant), ('job', job)) AS f (kind, value);
ALTER TABLE {name} ADD PRIMARY KEY (kind, opened_ns, value, incident) INCLUDE (tenant, cause, certain,
lost_rank_ms);
CREATE INDEX ON {name} (opened_ns);
ALTER TABLE incident_facts ATTACH PARTITION {name} FOR VALUES FROM ({begin}) TO ({end});
"""

# A summary is an Incident with its id, and as many bytes as a short one has.
ROWS = """
CREATE TABLE {name} (LIKE incidents);
INSERT INTO {name} (id, opened_ns, tenant, job, attempt, number, cause, state, closed_ns, confirmed, signature,
hang, daemon, summary, stacks)
SELECT id, opened_ns, tenant, job, 0, n, cause, 'resolved', opened_ns + 60000000000, 1, cause || '/' || site,
       id, 'rollcalld', '\\x0a'::bytea || set_byte('\\x00'::bytea, 0, length(id)) || convert_to(id, 'UTF8') ||
       '\\x52c801'::bytea || convert_to(repeat('x', 200), 'UTF8'), '' FROM made;
ALTER TABLE {name} ADD PRIMARY KEY (id, opened_ns);
{indexes}
ALTER TABLE incidents ATTACH PARTITION {name} FOR VALUES FROM ({begin}) TO ({end});
"""


class Server:
    def __init__(self, folder):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rollcall-questions-", dir=folder))
        if AS_NOBODY:
            os.chown(self.folder, 65534, 65534)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._run("initdb", f"--pgdata={self.folder / 'data'}", "--username=rollcall", "--encoding=UTF8",
                  "--no-locale", "--no-sync", "--auth=trust")
        self.process = None

    def _run(self, program, *arguments):
        subprocess.run([*AS_NOBODY, PROGRAMS / program, *arguments], check=True, capture_output=True, cwd="/")

    def start(self):
        settings = ["listen_addresses=127.0.0.1", "fsync=off", "wal_level=minimal", "max_wal_senders=0",
                    "max_wal_size=2GB", "shared_buffers=512MB", "maintenance_work_mem=512MB", "work_mem=64MB",
                    "autovacuum=off", "shared_preload_libraries=auto_explain",
                    "max_parallel_workers_per_gather=0", "max_parallel_maintenance_workers=0"]
        self.process = subprocess.Popen(
            [*AS_NOBODY, PROGRAMS / "postgres", "-D", self.folder / "data", "-k", self.folder, "-p",
             str(self.port), *(part for one in settings for part in ("-c", one))],
            stdout=subprocess.DEVNULL, stderr=open(self.folder / "log", "a"), cwd="/")
        deadline = time.monotonic() + 60
        ready = [PROGRAMS / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode != 0:
            if time.monotonic() > deadline:
                raise SystemExit(f"the server does not start: see {self.folder / 'log'}")
            time.sleep(0.1)

    def sql(self, text):
        """The lines of the answer. Several statements are one transaction."""
        return self._psql("-1", "-f", "-", text=text)

    def command(self, text):
        """A statement that cannot be in a transaction."""
        self._psql("-c", text)

    def _psql(self, *arguments, text=""):
        done = subprocess.run(
            [PROGRAMS / "psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
             "-p", str(self.port), "-U", "rollcall", "-d", "postgres", *arguments],
            input=text, check=False, capture_output=True, text=True,
            env={**os.environ, "PGOPTIONS": "-csearch_path=rollcall"})
        if done.returncode != 0:
            sys.stderr.write(done.stderr)
            done.check_returncode()
        return done.stdout.splitlines()

    def end(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)


class Daemon:
    def __init__(self, build, folder, server):
        url = f"postgresql://rollcall@127.0.0.1:{server.port}/postgres"
        self.process = subprocess.Popen(
            [build / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=127.0.0.1:0", f"--store={url}",
             "--history-size=1000000", f"--report-dir={folder}/reports"], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"pages on (\S+)/", line)
            if found:
                self.page = "http://" + found.group(1).removeprefix("http://")
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        raise SystemExit("the daemon did not start")

    def ask(self, path, **parameters):
        """Asks again while the daemon still works on the answer."""
        query = urllib.parse.urlencode(parameters)
        while True:
            try:
                with urllib.request.urlopen(f"{self.page}/api/v1/{path}?{query}", timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as refused:
                if "X-Rollcall-Working" not in refused.headers:
                    raise
            time.sleep(0.05)

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def week_of(seconds):
    return (seconds - FIRST_MONDAY_S) // WEEK_S


def fill(server, rows, now):
    """The 25 weeks before this one, and this one up to now."""
    server.sql("SELECT setseed(0.5)")
    indexes = server.sql("SELECT indexdef FROM pg_indexes WHERE schemaname = 'rollcall' AND tablename = "
                         "'incidents' AND indexname NOT LIKE '%pkey'")
    first_week = week_of(now) - WEEKS + 1
    begin, done = FIRST_MONDAY_S + first_week * WEEK_S, 0
    per_second = rows / (now - begin)
    for number in range(WEEKS):
        start = begin + number * WEEK_S
        end = min(start + WEEK_S, now)
        count = max(1, round(per_second * (end - start)))
        day = time.strftime("%Y%m%d", time.gmtime(start))
        bounds = {"begin": start * 10**9, "end": (start + WEEK_S) * 10**9}
        names = {table: f"{table}_{day}" for table in ("incidents", "incident_facts")}
        text = "".join(f"DROP TABLE IF EXISTS {name};\n" for name in names.values())
        text += INCIDENTS.format(first=done + 1, count=count, width=(end - start) * 10**9, **bounds)
        made = [re.sub(r"INDEX \w+ ON ONLY rollcall.incidents|INDEX \w+ ON rollcall.incidents",
                       f"INDEX ON {names['incidents']}", index) + ";" for index in indexes]
        text += ROWS.format(name=names["incidents"], indexes="\n".join(made), **bounds)
        text += FACTS.format(name=names["incident_facts"], **bounds)
        server.sql(text)
        done += count
    server.sql(f"UPDATE facts_filled SET below_ns = {-2**63}")
    server.command("VACUUM (ANALYZE)")
    return done


def count_weeks(build, folder, server):
    """Daemons count four weeks at once, each hour; here one after the other. A daemon whose counting the
    server has cut short would go on in an hour, and the next one does at once."""
    def counted():
        return int(server.sql("SELECT count(*) FROM counted_weeks WHERE mark = 1")[0])

    idle = 0
    while counted() < WEEKS - 1 and idle < 3:
        before = counted()
        daemon = Daemon(build, folder, server)
        last, changed = before, time.monotonic()
        while last < min(WEEKS - 1, before + 4) and time.monotonic() < changed + 120:
            time.sleep(0.5)
            if (now := counted()) != last:
                last, changed = now, time.monotonic()
        daemon.end()
        idle = idle + 1 if last == before else 0
    return counted()


def nodes_of(plan):
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes_of(below)


def plans_since(server, place):
    """The plans of the questions that the server has logged since then."""
    with open(server.folder / "log", encoding="utf-8") as log:
        log.seek(place)
        lines = log.read().splitlines()
    plan = None
    for line in lines:
        if line.endswith("plan:"):
            plan = []
        elif plan is not None and line.startswith("\t"):
            plan.append(line)
            if line == "\t}":
                whole, plan = json.loads("\n".join(plan)), None
                if "count(*) OVER ()" in whole["Query Text"]:
                    yield whole["Plan"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    options.add_argument("--rows", default=200_000, type=int)
    options.add_argument("--folder", default="/tmp", type=pathlib.Path)
    chosen = options.parse_args()
    if PROGRAMS is None:
        raise SystemExit("no PostgreSQL server is installed:  apt-get install postgresql")
    server = Server(chosen.folder)
    own = pathlib.Path(tempfile.mkdtemp(prefix="rollcall-questions-daemon-", dir=chosen.folder))
    failed = False
    try:
        server.start()
        Daemon(chosen.build, own, server).end()  # makes the tables
        begun = time.monotonic()
        now = int(time.time())
        rows = fill(server, chosen.rows, now)
        filled = time.monotonic()
        weeks = count_weeks(chosen.build, own, server)
        server.command("VACUUM (ANALYZE) rollcall.week_counts")
        size = server.sql("SELECT pg_size_pretty(pg_database_size('postgres'))")[0]
        facts = server.sql("SELECT pg_size_pretty(sum(pg_total_relation_size(inhrelid))) FROM pg_inherits "
                           "WHERE inhparent = 'incident_facts'::regclass")[0]
        counts = server.sql("SELECT pg_size_pretty(pg_total_relation_size('week_counts')), count(*) FROM "
                            "week_counts")[0]
        print(f"{rows:,} incidents in {size}, facts {facts}, counts of weeks {counts}; filled in "
              f"{filled - begun:.0f} s, {weeks} weeks counted in {time.monotonic() - filled:.0f} s", flush=True)
        for name, value in (("log_min_duration", "0"), ("log_format", "json")):
            server.command(f"ALTER SYSTEM SET auto_explain.{name} = '{value}'")
        server.sql("SELECT pg_reload_conf()")
        daemon = Daemon(chosen.build, own, server)
        time.sleep(2)
        failed = measure(server, daemon, now)
        daemon.end()
    finally:
        server.end()
        shutil.rmtree(own, ignore_errors=True)
    return 1 if failed else 0


def measure(server, daemon, now):
    failed = False
    print(f"{'question':42} {'first':>7} {'median':>7} {'wanted':>7}  reads")
    for days in (7, 30, 90, 182):
        from_ = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(now - (days - 1) * 86400))
        for by, filters in [(kind, {}) for kind in ("host", "gpu", "label:switch", "user", "framework",
                                                    "call_site", "cause", "tenant", "job")] + [
                ("host", {"tenant": "team-0"}), ("gpu", {"tenant": "team-0"}),
                ("host", {"tenant": "team-0", "job": JOB}), ("gpu", {"job": JOB})]:
            place = (server.folder / "log").stat().st_size
            times = []
            for number in range(ROUNDS):
                begun = time.monotonic()
                # Another limit is another request to the daemon, which keeps answers for a moment.
                answer = daemon.ask("questions", by=by, limit=50 + number, **{"from": from_}, **filters)
                # With a note the database has not answered within a minute.
                times.append(float("inf") if answer["note"] else time.monotonic() - begun)
                assert answer["counts"] or answer["note"], answer
            # The partition of the next week is there, and empty.
            kinds = {node["Node Type"] for plan in plans_since(server, place) for node in nodes_of(plan)
                     if "Relation Name" in node and node["Plan Rows"] > 1}
            median = statistics.median(times)
            bad = median > WANTED_S or "Seq Scan" in kinds or not kinds
            failed = failed or bad
            name = f"{days} days by {by}" + "".join(f", {key}" for key in filters)
            print(f"{name:42} {times[0]:6.2f}s {median:6.2f}s {WANTED_S:6.1f}s  {', '.join(sorted(kinds))}"
                  f"{'  FAILED' if bad else ''}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
