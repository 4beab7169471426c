# SPDX-License-Identifier: Apache-2.0
"""Questions over all history, of real hangs: by HTTP, on the command line, as CSV, and as the dashboard of
Grafana asks the database. On SQLite and on PostgreSQL."""
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from conftest import BUILD, ROLLCALL, Service, long, wait_for
from postgres_server import postgres  # noqa: F401 (a fixture)

DASHBOARD = pathlib.Path(__file__).parents[3] / "deploy" / "grafana" / "rollcall_history.json"


def start_daemon(folder, server=None, store=""):
    labels = folder / "labels"
    labels.write_text(f"{os.uname().nodename} switch=leaf-3 rack=r12\n")
    service = Service([BUILD / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                       "--hang-after=3s", f"--report-dir={folder / 'reports'}", f"--host-labels={labels}",
                       *([f"--store={store or server.url}"] if server else [])],
                      env=server.environment if server else {})
    said = service.read_until(r"agents on (127\.0\.0\.1:\d+), pages on (http://127\.0\.0\.1:\d+)/")
    service.address, service.page = said.groups()
    service.server, service.labels = server, labels
    return service


@pytest.fixture(params=["sqlite", long("postgresql")])
def kept(request, tmp_path):
    """A daemon, with its database if it has one."""
    server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    service = start_daemon(tmp_path, server)
    yield service
    if service.process.poll() is None:
        service.kill()


def ask(daemon, path, **parameters):
    query = urllib.parse.urlencode(parameters)
    with urllib.request.urlopen(f"{daemon.page}/api/v1/{path}?{query}", timeout=120) as answer:
        return json.load(answer)


def rollcall(daemon, *words):
    return subprocess.run([ROLLCALL, *words, f"--daemon={daemon.address}"], capture_output=True, text=True,
                          check=False, timeout=120)


def counted(daemon, by, **filters):
    return ask(daemon, "questions", by=by, **filters)["counts"]


def lines_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_hang_is_counted_by_host_cause_and_user_and_leads_to_its_incident(kept, start_job):
    job = start_job(kept)
    one, = wait_for(lambda: counted(kept, "cause"))
    assert (one["value"], one["incidents"]) == ("missing_rank", 1)
    incident = ask(kept, "incident", id=one["newest"])
    assert incident["ranks"] == 4
    assert incident["waits_since"] < incident["opened_at"]
    host = incident["verdicts"][0]["culprits"][0]["host"]
    assert [row["value"] for row in counted(kept, "host", cause="missing_rank")] == [host]
    assert [row["value"] for row in counted(kept, "user")] == [str(os.getuid())]
    assert [row["value"] for row in counted(kept, "job")] == ["a-job"]
    assert counted(kept, "host", cause="rank_died") == []
    assert counted(kept, "host", until=incident["opened_at"]) == []
    job.kill()
    # Four ranks, from the first wait on: more than the seconds until it was suspected.
    lost = wait_for(lambda: [row for row in counted(kept, "cause")
                             if ask(kept, "incident", id=one["newest"]).get("closed_at")])
    assert lost[0]["lost_rank_seconds"] > 4 * 3


def test_the_switch_of_a_host_is_what_the_operator_says_also_after_a_reload(kept, start_job):
    first = start_job(kept, name="first")
    wait_for(lambda: [row["value"] for row in counted(kept, "label:switch")] == ["leaf-3"])
    assert [row["value"] for row in counted(kept, "label:rack")] == ["r12"]
    first.kill()
    wait_for(lambda: ask(kept, "incidents")["incidents"][0].get("closed_at"))
    kept.labels.write_text(f"{os.uname().nodename} switch=leaf-4\n")
    kept.process.send_signal(signal.SIGHUP)
    kept.read_until("reload|flags|read")
    start_job(kept, name="second")
    wait_for(lambda: {row["value"] for row in counted(kept, "label:switch", job="second")} == {"leaf-4"})
    assert "leaf-3" in {row["value"] for row in counted(kept, "label:switch", job="first")}


def test_a_file_of_labels_that_cannot_be_read_stops_the_start_and_names_the_line(tmp_path):
    labels = tmp_path / "labels"
    labels.write_text("node-1 switch=a\nnode-2 b\n")
    done = subprocess.run([BUILD / "bin" / "rollcalld", f"--host-labels={labels}"], capture_output=True,
                          text=True, check=False, timeout=120)
    assert done.returncode == 1, done.stderr
    assert 'line 2: "b" is not NAME=VALUE' in done.stderr


def slow_down(server, seconds):
    """Each row of facts that the user `keeper` reads takes so long."""
    server.sql(f"""
        CREATE FUNCTION public.slow() RETURNS boolean LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_sleep({seconds}); RETURN true; END';
        ALTER TABLE rollcall.incident_facts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY reads ON rollcall.incident_facts FOR SELECT USING (public.slow());
        CREATE POLICY inserts ON rollcall.incident_facts FOR INSERT WITH CHECK (true);
        CREATE POLICY updates ON rollcall.incident_facts FOR UPDATE USING (true);
        CREATE POLICY deletes ON rollcall.incident_facts FOR DELETE USING (true)""")


@pytest.mark.long
def test_a_slow_question_holds_up_no_list_and_is_answered_to_who_asks_again(postgres, start_job, tmp_path):
    postgres.sql(f"CREATE ROLE keeper LOGIN PASSWORD '{postgres.environment['PGPASSWORD']}'; "
                 "GRANT CREATE ON DATABASE rollcall TO keeper")
    daemon = start_daemon(tmp_path, postgres, postgres.url.replace("//rollcall@", "//keeper@"))
    try:
        start_job(daemon)
        wait_for(lambda: counted(daemon, "cause"))
        slow_down(postgres, 3)
        with pytest.raises(urllib.error.HTTPError) as refused:
            counted(daemon, "host")
        headers = refused.value.headers
        assert (refused.value.code, headers["Retry-After"], headers["X-Rollcall-Working"]) == (503, "1", "1")
        assert b"ask again for its answer" in refused.value.read()
        assert [one["job"] for one in ask(daemon, "incidents")["incidents"]] == ["a-job"]
        by_host = rollcall(daemon, "incidents", "--by=host", "--format=json")
        assert by_host.returncode == 0, by_host.stderr
        one, = json.loads(by_host.stdout)["counts"]
        assert (one["value"], one["incidents"]) == (os.uname().nodename, 1)
    finally:
        daemon.kill()


def test_a_question_that_cannot_be_asked_says_which_there_are(kept):
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(kept, "questions", by="colour")
    assert refused.value.code == 400
    assert 'host, gpu, user, framework, call_site, cause, tenant, job and label:NAME; not "colour"' in (
        refused.value.read().decode())


def test_the_command_line_counts_and_exports(kept, start_job):
    start_job(kept)
    wait_for(lambda: counted(kept, "cause"))
    text = rollcall(kept, "incidents", "--by=cause", "--since=7d")
    assert text.returncode == 0, text.stderr
    assert re.search(r"^missing_rank +1 ", text.stdout, re.M), text.stdout
    found = json.loads(rollcall(kept, "incidents", "--by=host", "--format=json").stdout)
    assert found["counts"][0]["incidents"] == 1
    exported = rollcall(kept, "incidents", "--format=csv")
    assert exported.returncode == 0, exported.stderr
    row, = lines_of(exported.stdout)
    assert (row["job"], row["cause"], row["ranks"], row["culprit_ranks"]) == ("a-job", "missing_rank", "4", "3")
    with urllib.request.urlopen(f"{kept.page}/api/v1/incidents.csv?limit=10", timeout=120) as answer:
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert [line["id"] for line in lines_of(answer.read().decode())] == [row["id"]]
    for words, why in ((["--by=host", "--group"], "--by counts"), (["--since=x"], "30d or 12h"),
                       (["--since=1d", "--from=2026-01-01"], "two beginnings"),
                       (["--format=csv", "--limit=3"], "the whole list")):
        wrong = rollcall(kept, "incidents", *words)
        assert wrong.returncode == 2 and why in wrong.stderr, wrong.stderr


def varint(number):
    more = [number & 127 | 128]
    while number := number >> 7:
        more.append(number & 127 | 128)
    return bytes([*more[:-1], more[-1] & 127])


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def summary_of(name, seconds):
    """An Incident with its id and the time of its opening, as the history keeps it."""
    return message(1, name.encode()) + message(4, b"\x08" + varint(seconds))


@pytest.mark.long
@pytest.mark.parametrize("kept", ["postgresql"], indirect=True)
def test_an_export_has_each_of_thousands_of_incidents_once(kept):
    """More than a daemon answers at once, and more of one time than that."""
    now = int(time.time()) // 86400 * 86400
    rows = [(f"x-{n}", now - (0 if n < 2500 else n)) for n in range(3200)]
    wait_for(lambda: kept.server.sql("SELECT 1 FROM pg_tables WHERE tablename = 'incidents' AND schemaname = "
                                     "'rollcall'"))
    kept.server.sql(f"CREATE TABLE rollcall.incidents_all PARTITION OF rollcall.incidents FOR VALUES FROM (0) TO "
                    f"({(now - 60 * 86400) * 10**9})")
    for begin in range(0, len(rows), 400):
        kept.server.sql("INSERT INTO rollcall.incidents VALUES " + ", ".join(
            f"('{name}', {seconds - 90 * 86400}000000000, 'default', 'x', 0, 1, 'rank_died', 'ended', 1, 0, '', '', "
            f"'other', '\\x{summary_of(name, seconds - 90 * 86400).hex()}', '')"
            for name, seconds in rows[begin:begin + 400]))
    exported = rollcall(kept, "incidents", "--format=csv")
    assert exported.returncode == 0, exported.stderr
    ids = [row["id"] for row in lines_of(exported.stdout)]
    assert len(ids) == len(set(ids)) == 3200


@pytest.mark.parametrize("kept", ["postgresql"], indirect=True)
def test_every_query_of_the_dashboard_answers_on_a_real_database(kept, start_job):
    start_job(kept)
    wait_for(lambda: counted(kept, "cause"))
    dashboard = json.loads(DASHBOARD.read_text())
    queries = {variable["name"]: variable["query"] for variable in dashboard["templating"]["list"]
               if variable["type"] == "query"}
    for panel in dashboard["panels"]:
        target, = panel["targets"]
        assert target["rawQuery"] and target["format"] in ("table", "time_series")
        queries[panel["title"]] = target["rawSql"]
    assert len(queries) == 13
    for name, query in queries.items():
        text = re.sub(r"\$__unixEpochNanoFilter\((\w+)\)", r"\1 >= 0 AND \1 <= 4000000000000000000", query)
        text = text.replace("${tenant:sqlstring}", "'default'").replace("${cause:sqlstring}", "'missing_rank'")
        assert "$" not in text, name
        rows = kept.server.sql(text)
        assert rows or name in ("GPUs that come back", "Switches that come back"), name
