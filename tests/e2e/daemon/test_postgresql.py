# SPDX-License-Identifier: Apache-2.0
"""The history in PostgreSQL: real daemons on a real server, which is stopped, comes back, and changes."""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import time
import urllib.request

import pytest
from conftest import BUILD, ROLLCALL, Service, ask, seen_by_ps, wait_for
from postgres_server import PASSWORD, PostgresServer, postgres  # noqa: F401 (a fixture)


@pytest.fixture
def start(tmp_path, postgres):
    """start(*flags): a daemon with its history on the server."""
    services = []

    def start_one(*flags, name="daemon-1", store=None):
        service = Service([BUILD / "bin" / "rollcalld", "--http=127.0.0.1:0", "--hang-after=3s",
                           f"--report-dir={tmp_path / name}", f"--store={store or postgres.url}",
                           f"--daemon-name={name}",
                           *(flags if any("--listen" in flag for flag in flags)
                             else ["--listen=127.0.0.1:0", *flags])],
                          env=postgres.environment)
        services.append(service)
        said = service.read_until(r"agents on (127\.0\.0\.1:\d+), pages on (http://127\.0\.0\.1:\d+)/")
        service.address, service.page = said.groups()
        return service

    yield start_one
    for service in services:
        if service.process.poll() is None:
            service.kill()


def listed(daemon):
    return ask(daemon, "incidents")


def confirmed(daemon):
    return [incident for incident in listed(daemon)["incidents"] if incident["state"] == "confirmed"]


def alerts_in(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def metric(daemon, name):
    with urllib.request.urlopen(f"{daemon.page}/metrics", timeout=120) as answer:
        return float(re.search(rf"^{name} (\S+)$", answer.read().decode(), re.M)[1])


def alert_to(file):
    return f"--alert=exec=cat >> {file}; echo >> {file}"


def test_the_daemon_reaches_a_database_that_wants_tls_and_knows_a_wrong_certificate(start, start_job, postgres):
    authority, other = postgres.require_tls()
    daemon = start(store=f"{postgres.url}?sslmode=verify-full&sslrootcert={authority}")
    start_job(daemon)
    known, = wait_for(lambda: confirmed(daemon))
    wait_for(lambda: (known["id"], "confirmed", "daemon-1") in postgres.incidents())
    assert postgres.sql("SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                        "WHERE datname = 'rollcall'") == [["t"]]
    daemon.kill()
    distrusts = start(store=f"{postgres.url}?sslmode=verify-full&sslrootcert={other}", name="daemon-2")
    distrusts.find_or_read_until("certificate verify failed")


def test_a_hang_is_in_the_database_and_the_next_daemon_continues_it(start, start_job, postgres,
                                                                   tmp_path):
    sent = tmp_path / "alerts"
    daemon = start(alert_to(sent))
    start_job(daemon)
    known, = wait_for(lambda: confirmed(daemon))
    wait_for(lambda: (known["id"], "confirmed", "daemon-1") in postgres.incidents())
    wait_for(lambda: len(alerts_in(sent)) == 1)
    wait_for(lambda: postgres.sql("SELECT sent FROM rollcall.outbox") == [["1"]])
    seen = seen_by_ps(daemon.process.pid)
    assert f"rollcall:{PASSWORD}" not in seen

    # The next daemon has another disk: the database is all that it has.
    daemon.kill(signal.SIGKILL)
    for file in tmp_path.glob("daemon-1.spool.db*"):
        file.unlink()
    daemon = start(f"--listen={daemon.address}", alert_to(sent))
    assert confirmed(daemon), "before the agents are back"
    time.sleep(12)  # the agents come back, and a wrong alert or end would come
    assert [(i["id"], i["state"]) for i in listed(daemon)["incidents"]] == [(known["id"], "confirmed")]
    assert [alert["status"] for alert in alerts_in(sent)] == ["firing"]
    said = subprocess.run([ROLLCALL, "incidents", f"--daemon={daemon.address}"], capture_output=True,
                          text=True, timeout=120, check=False)
    assert known["id"] in said.stdout


@pytest.mark.long
def test_a_daemon_whose_database_is_away_detects_alerts_and_loses_nothing(start, start_job, postgres,
                                                                         tmp_path):
    sent = tmp_path / "alerts"
    daemon = start(alert_to(sent))
    wait_for(lambda: metric(daemon, "rollcall_history_database_away") == 0)
    postgres.stop()
    daemon.read_until("cannot reach the history's database")
    start_job(daemon)
    known, = wait_for(lambda: confirmed(daemon))
    wait_for(lambda: len(alerts_in(sent)) == 1)
    wait_for(lambda: "is away" in listed(daemon)["note"])
    assert metric(daemon, "rollcall_history_database_away") == 1
    assert metric(daemon, "rollcall_history_spooled") > 0
    with urllib.request.urlopen(f"{daemon.page}/healthz", timeout=120) as answer:
        assert answer.status == 200, "it detects"

    # kill -9 in the middle, and a start without the database.
    daemon.kill(signal.SIGKILL)
    daemon = start(f"--listen={daemon.address}", alert_to(sent))
    assert [i["id"] for i in confirmed(daemon)] == [known["id"]], "from its own disk"
    time.sleep(12)
    assert [i["id"] for i in confirmed(daemon)] == [known["id"]]
    assert [alert["status"] for alert in alerts_in(sent)] == ["firing"]

    postgres.start()
    wait_for(lambda: (known["id"], "confirmed", "daemon-1") in postgres.incidents())
    wait_for(lambda: metric(daemon, "rollcall_history_spooled") == 0)
    wait_for(lambda: listed(daemon)["note"] == "")
    assert [i["id"] for i in listed(daemon)["incidents"]] == [known["id"]]
    assert postgres.sql("SELECT sent FROM rollcall.outbox") == [["1"]]


@pytest.mark.long
def test_connections_that_are_cut_and_a_server_that_restarts_cost_nothing(start, start_job, postgres):
    daemon = start()
    start_job(daemon)
    known, = wait_for(lambda: confirmed(daemon))
    for _ in range(3):
        postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                     "'rollcalld'")
        time.sleep(1)
        assert [i["id"] for i in confirmed(daemon)] == [known["id"]]
    postgres.stop()
    postgres.start()
    wait_for(lambda: metric(daemon, "rollcall_history_database_away") == 0)
    wait_for(lambda: metric(daemon, "rollcall_history_spooled") == 0)
    assert [row[0] for row in postgres.incidents()] == [known["id"]]


@pytest.mark.long
def test_two_daemons_that_start_at_once_share_the_database_and_each_shows_both(start, start_job, postgres):
    with concurrent.futures.ThreadPoolExecutor() as pool:  # on a database without tables
        first, second = pool.map(lambda name: start(name=name), ["daemon-1", "daemon-2"])
    assert postgres.sql("SELECT count(*), count(DISTINCT number) FROM rollcall.layouts") == [
        postgres.sql("SELECT max(number), max(number) FROM rollcall.layouts")[0]]
    start_job(first, name="one")
    start_job(second, name="two")
    wait_for(lambda: confirmed(first) and confirmed(second))
    wait_for(lambda: len(postgres.incidents()) == 2)
    for daemon in (first, second):
        wait_for(lambda: {i["job"] for i in listed(daemon)["incidents"]} == {"one", "two"})
    # Each continues its own alone.
    second.kill(signal.SIGKILL)
    second = start(f"--listen={second.address}", name="daemon-2")
    time.sleep(5)
    states = {row[0]: row[1] for row in postgres.incidents()}
    assert states["one-1"] == "confirmed"


@pytest.mark.long
def test_a_full_disk_of_the_server_is_a_database_that_is_away(start, start_job, tmp_path):
    server, sent = PostgresServer(disk=16), tmp_path / "alerts"
    try:
        daemon = start(alert_to(sent), store=server.url)
        wait_for(lambda: metric(daemon, "rollcall_history_database_away") == 0)
        filler = server.fill_disk()
        start_job(daemon)
        known, = wait_for(lambda: confirmed(daemon))
        wait_for(lambda: len(alerts_in(sent)) == 1)
        wait_for(lambda: metric(daemon, "rollcall_history_spooled") > 0)
        daemon.find_or_read_until("No space left on device")
        filler.unlink()
        wait_for(lambda: (known["id"], "confirmed", "daemon-1") in server.incidents())
        wait_for(lambda: metric(daemon, "rollcall_history_spooled") == 0)
        assert metric(daemon, "rollcall_history_lost_total") == 0
    finally:
        server.end()


def refused(*flags, environment=None):
    return subprocess.run([BUILD / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=127.0.0.1:0", *flags],
                          capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_a_wrong_password_stops_the_first_start_and_the_message_has_none(postgres, tmp_path):
    url = tmp_path / "url"
    url.touch(mode=0o600)
    url.write_text(f"postgresql://rollcall:wr0ng-one@127.0.0.1:{postgres.port}/rollcall\n")
    done = refused(f"--store=@{url}", f"--report-dir={tmp_path / 'reports'}")
    assert done.returncode == 1
    assert "authentication failed" in done.stderr and "is the password right?" in done.stderr
    assert "wr0ng-one" not in done.stderr + done.stdout


def test_a_password_in_the_command_line_is_refused(tmp_path):
    done = refused("--store=postgresql://rollcall:s3cret@127.0.0.1:1/rollcall", "--check-config")
    assert done.returncode != 0
    assert "can see a password in a command line" in done.stderr and "s3cret" not in done.stderr


@pytest.mark.parametrize("flags, words", [
    (["--store=mysql://db-1/rollcall"], "not a store"),
    (["--store=postgresql://db-1/rollcall?nonsense=1"], "not a URL of PostgreSQL"),
    (["--store=postgresql://db-1/rollcall", "--history=a.db"], "leave out one"),
    (["--store=a.db", "--history=b.db"], "leave out one"),
    (["--store=@/none/such"], "--store: "),
])
def test_a_store_that_cannot_be_is_a_wrong_setting(flags, words):
    done = refused(*flags, "--check-config")
    assert done.returncode == 2, done.stderr
    assert words in done.stderr


def test_a_path_as_store_is_the_file_of_the_history(start_daemon, tmp_path):
    start_daemon(f"--store={tmp_path / 'mine.db'}")
    assert (tmp_path / "mine.db").exists()


def test_a_database_of_a_later_release_is_refused_with_what_to_do(start, postgres, tmp_path):
    start().kill()
    postgres.sql("INSERT INTO rollcall.layouts (number, usable_from) VALUES (99, 99)")
    done = refused(f"--store={postgres.url}", f"--report-dir={tmp_path / 'other'}",
                   environment={**os.environ, **postgres.environment})
    assert done.returncode == 1
    assert "run the later release here too" in done.stderr


def test_a_history_of_sqlite_is_copied_and_the_daemon_continues_it(start_daemon, start, start_job, postgres, tmp_path):
    sent = tmp_path / "alerts"
    alone = start_daemon(alert_to(sent))
    start_job(alone)
    known, = wait_for(lambda: confirmed(alone))
    wait_for(lambda: len(alerts_in(sent)) == 1)
    history = tmp_path / "daemon-reports.db"
    port = alone.address.rpartition(":")[2]
    alone.kill()

    def import_it():
        return subprocess.run([BUILD / "bin" / "rollcalld", f"--store={postgres.url}", "--daemon-name=daemon-1",
                               f"--import-history={history}"], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **postgres.environment})

    done = import_it()
    assert done.returncode == 0, done
    assert re.match(r"copied 1 incidents \(0 were there already\), the hosts and attempts of 1 jobs", done.stdout), done
    assert "copied 0 incidents (1 were there already)" in import_it().stdout
    assert postgres.incidents() == [(known["id"], "confirmed", "daemon-1")]

    daemon = start(f"--listen=127.0.0.1:{port}", alert_to(sent))
    wait_for(lambda: [incident["id"] for incident in confirmed(daemon)] == [known["id"]])
    time.sleep(5)  # a second alert would come with the first verdict
    assert len(alerts_in(sent)) == 1


def test_a_history_cannot_be_imported_into_a_file(tmp_path):
    done = subprocess.run([BUILD / "bin" / "rollcalld", f"--import-history={tmp_path / 'history.db'}"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "--store=postgresql://" in done.stderr
