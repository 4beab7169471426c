# SPDX-License-Identifier: Apache-2.0
"""Whichever of several daemons somebody asks shows the jobs of all, and acts for all."""
import json
import signal
import subprocess
import time

import pytest
from conftest import BUILD, ROLLCALL, VICTIMS, Service, ask, new_token, page, wait_for
from fleet_chaos import Proxy
from postgres_server import free_port, postgres  # noqa: F401 (a fixture)
from test_fleet import confirmed, fleet, jobs_of  # noqa: F401 (a fixture)


def rollcall(daemon, *arguments):
    """What the command prints, if it succeeds."""
    return subprocess.run([ROLLCALL, *arguments, f"--daemon={daemon.address}"], capture_output=True,
                          text=True, check=True, timeout=120).stdout


def others(fleet, owner):
    return [daemon for daemon in fleet.daemons.values() if daemon is not owner]


@pytest.mark.long
def test_every_daemon_shows_all_jobs_and_what_there_is_about_each(fleet, start_job):
    names = ["a-job", "b-job", "c-job"]
    for name in names:
        start_job(fleet, name=name)
    wait_for(lambda: all(fleet.owner(name) for name in names))
    for daemon in fleet.daemons.values():
        wait_for(lambda: jobs_of(daemon) == dict.fromkeys(names, "hung"))
        # On a busy machine a daemon may once take longer than the second that the others wait.
        jobs = wait_for(lambda: next((said for said in [ask(daemon, "jobs")]
                                      if said["silent_daemons"] == []), None))
        assert {job["name"]: job["daemon"] for job in jobs["jobs"]} == {
            name: fleet.owner(name) for name in names}
        assert jobs["jobs_total"] == 3
        for name in names:
            view = ask(daemon, f"job?job={name}")
            assert view["status"]["daemon"] == fleet.owner(name)
            assert ask(daemon, f"processes?job={name}")["total"] == view["status"]["processes"]
            incident = ask(daemon, f"incident?id={view['incident']}")
            assert incident["job"] == name and incident["state"] == "confirmed"
        assert sorted(i["job"] for i in confirmed(daemon)) == names
        status = rollcall(daemon, "status")
        assert all(name in status for name in names) and "does not answer" not in status


def test_any_daemon_acts_for_the_owner_of_a_job(fleet, start_job):
    start_job(fleet, name="a-job")
    owner = fleet.owning("a-job")
    known, = wait_for(lambda: confirmed(owner))
    asked, third = others(fleet, owner)
    assert "rank 0" in rollcall(asked, "stacks", "a-job", "--each")
    rollcall(asked, "acknowledge", known["id"])
    rollcall(third, "note", known["id"], "a cable")
    incident = ask(owner, f"incident?id={known['id']}")
    assert "acknowledged" in incident and incident["notes"][0]["text"] == "a cable"
    rollcall(asked, "silence", "--job=z-*", "--for=1h")
    for daemon in fleet.daemons.values():
        silence, = wait_for(lambda: ask(daemon, "silences")["silences"])
    rollcall(third, "silence", f"--end={silence['id']}")
    for daemon in fleet.daemons.values():
        wait_for(lambda: not ask(daemon, "silences")["silences"])


@pytest.mark.long
def test_a_daemon_that_stands_still_is_named_in_time(fleet, start_job):
    start_job(fleet, name="a-job")
    owner = fleet.owning("a-job")
    asked = others(fleet, owner)[0]
    wait_for(lambda: "a-job" in jobs_of(asked))
    owner.process.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    jobs = ask(asked, "jobs?limit=9")  # an address without an earlier request, so no answer is kept
    took = time.monotonic() - begun
    assert jobs["silent_daemons"] == [owner.name]
    assert took < 2.5, took
    assert f"{owner.name} does not answer" in rollcall(asked, "status")
    # Another daemon takes its job, and then it is not missed.
    wait_for(lambda: ask(asked, "jobs")["silent_daemons"] == [] and "a-job" in jobs_of(asked))


@pytest.mark.long
def test_the_command_line_asks_another_daemon_if_one_accepts_connections_and_never_answers(fleet, start_job):
    start_job(fleet, name="a-job")
    daemon = fleet.owning("a-job")
    host, port = daemon.address.split(":")
    silent = Proxy((host, free_port()), (host, int(port)))
    silent.stalls = True
    try:
        asked = subprocess.run([ROLLCALL, "status", f"--daemon={host}:{silent.listen[1]},{daemon.address}"],
                               capture_output=True, text=True, timeout=120, check=False)
    finally:
        silent.stalls, silent.drops = False, True
        silent.close()
    assert asked.returncode == 0 and "a-job" in asked.stdout, asked.stderr


def start_with_tls(name, folder, pki, postgres):
    """A daemon with certificates and tokens."""
    daemon = Service([BUILD / "bin" / "rollcalld", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                      "--hang-after=3s", f"--report-dir={folder / name}", f"--store={postgres.url}",
                      f"--daemon-name={name}", f"--token-file={folder / 'tokens'}",
                      f"--tls-cert={pki / 'daemon.crt'}", f"--tls-key={pki / 'daemon.key'}",
                      f"--tls-client-ca={pki / 'ca.crt'}"], env=postgres.environment)
    daemon.address, daemon.page_port = daemon.read_until(
        r"agents on (127\.0\.0\.1:\d+), pages on https://127\.0\.0\.1:(\d+)/").groups()
    return daemon


def test_role_and_tenants_of_a_caller_hold_at_the_other_daemon_and_no_secret_shows(
        tmp_path, postgres, pki):
    headers = {}
    for tenant in ("alpha", "beta"):
        token, _ = new_token(tmp_path, tenant, "--role=viewer", f"--tenant={tenant}")
        headers[tenant] = {"Authorization": f"Bearer {token}"}
    daemons = [start_with_tls(name, tmp_path, pki, postgres) for name in ("east", "west")]
    jobs = [Service([ROLLCALL, "run", "--sim", f"--tls-ca={pki / 'ca.crt'}", "--hang-after=3s",
                     f"--daemon={','.join(daemon.address for daemon in daemons)}",
                     f"--report-dir={tmp_path / 'here'}", "--", VICTIMS / "ranks", "-n", "2",
                     "--keep-going", "--", VICTIMS / "one_rank_stops_calling"],
                    env={"ROLLCALL_JOB": f"{tenant}-job", "ROLLCALL_TENANT": tenant})
            for tenant in ("alpha", "beta")]
    seen, secrets = "", []

    def listed(daemon):
        _, text = page(daemon, "/api/v1/jobs", headers["alpha"])
        return [job["name"] for job in json.loads(text)["jobs"] if job["state"] == "hung"]

    try:
        for daemon in daemons:
            wait_for(lambda: listed(daemon) == ["alpha-job"])
            for path in ("jobs", "incidents", "job?job=alpha-job"):
                status, text = page(daemon, f"/api/v1/{path}", headers["alpha"])
                assert status == 200 and "beta" not in text, text
                seen += text
            status, text = page(daemon, "/api/v1/job?job=beta-job&tenant=beta", headers["alpha"])
            assert status == 404 and "beta/" not in text, text
            assert page(daemon, "/api/v1/job?job=beta-job", headers["beta"])[0] == 200
            status, _ = page(daemon, "/api/v1/stacks?job=alpha-job&ranks=0", headers["alpha"], data=b"")
            assert status == 403
        secrets = [row[0] for row in postgres.sql("SELECT secret FROM rollcall.daemons")]
        assert len(secrets) == 2 and all(len(secret) > 20 for secret in secrets)
    finally:
        for job in jobs:
            job.kill()
        said = "".join(daemon.end() for daemon in daemons)
    assert not [secret for secret in secrets if secret in said + seen]
