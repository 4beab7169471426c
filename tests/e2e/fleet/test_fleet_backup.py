# SPDX-License-Identifier: Apache-2.0
"""A backup of the database of several daemons, made while they run, and restored under jobs that run."""
import os
import subprocess
import time

import pytest
from conftest import ask, wait_for
from postgres_server import PROGRAMS, postgres  # noqa: F401 (a fixture)
from test_fleet import confirmed, fleet, jobs_of  # noqa: F401 (a fixture)

pytestmark = pytest.mark.long


def run(server, program, *arguments):
    subprocess.run([PROGRAMS / program, "-h", "127.0.0.1", "-p", str(server.port), "-U", "rollcall", *arguments],
                   check=True, capture_output=True, timeout=120, env={**os.environ, **server.environment})


def keys(alerts, job):
    return [(alert["idempotency_key"], alert["status"]) for alert in alerts if alert["job"] == job]


def test_a_restored_backup_goes_on_with_the_incidents_it_has_and_finds_the_later_ones_anew(fleet, start_job, tmp_path):
    server, backup = fleet.postgres, tmp_path / "backup"
    start_job(fleet, name="before")
    known, = wait_for(lambda: confirmed(fleet.owning("before")))
    wait_for(lambda: server.sql("SELECT sent FROM rollcall.outbox") == [["1"]])
    run(server, "pg_dump", "--format=custom", f"--file={backup}", "rollcall")

    late = start_job(fleet, name="after")
    wait_for(lambda: len(confirmed(fleet.owning("after"))) == 2)
    wait_for(lambda: server.sql("SELECT count(*) FROM rollcall.outbox WHERE sent = 1") == [["2"]])
    addresses = {daemon.name: daemon.address for daemon in fleet.living()}
    for daemon in fleet.living():
        daemon.process.terminate()
    for daemon in fleet.daemons.values():
        daemon.process.wait(timeout=120)
    run(server, "dropdb", "rollcall")
    run(server, "createdb", "rollcall")
    run(server, "pg_restore", "--dbname=rollcall", "--exit-on-error", backup)
    for name, address in addresses.items():
        fleet.start(name, listen=address)

    daemon = fleet.daemons["daemon-2"]
    wait_for(lambda: jobs_of(daemon) == {"before": "hung", "after": "hung"})
    time.sleep(6)  # a second alert, or a wrong end, would come
    open_ones = {i["job"]: i["id"] for i in confirmed(daemon)}
    assert len(confirmed(daemon)) == 2
    assert open_ones["before"] == known["id"]
    assert keys(fleet.alerts(), "before") == [(f"{known['id']}/1", "firing")]
    # The backup does not know this alert. Its receiver does, by the key.
    assert set(keys(fleet.alerts(), "after")) == {("after-1/1", "firing")}
    late.kill()
    wait_for(lambda: ("after-1/2", "resolved") in keys(fleet.alerts(), "after"))
    wait_for(lambda: server.sql("SELECT state FROM rollcall.incidents WHERE job = 'after'") == [["ended"]])
    assert [i["id"] for i in ask(daemon, "incidents")["incidents"] if i["job"] == "before"] == [known["id"]]
