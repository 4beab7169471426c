# SPDX-License-Identifier: Apache-2.0
"""A viewer of one tenant and the hung job of another: on the page, its API, its event stream and
the command line, what is not yours does not exist."""
import json
import os
import re
import subprocess
import urllib.error
import urllib.request

import pytest
from conftest import ROLLCALL, VICTIMS, Service, wait_for

# The tests share a daemon and two jobs.
pytestmark = pytest.mark.xdist_group("tenants")

OWN, OTHER = "alpha-job", "beta-secret"
NEVER = "no-such-job"


def rollcall(*arguments):
    return subprocess.run([ROLLCALL, *arguments], capture_output=True, text=True, timeout=120,
                          check=False)


def without_time(text):
    """Answers that are alike have other times."""
    return re.sub(r'"now":"[^"]*"', "", text)


class Site:
    """A daemon with a hung job of each of two tenants, and a viewer's token for each."""

    def __init__(self, daemon, folder):
        self.daemon, self.folder, self.jobs = daemon, folder, []

    def add(self, tenant, job):
        self.jobs.append(Service(
            [ROLLCALL, "run", "--sim", f"--daemon={self.daemon.address}", "--hang-after=3s",
             f"--report-dir={self.folder / 'here'}", "--", VICTIMS / "ranks", "-n", "2",
             "--keep-going", "--", VICTIMS / "one_rank_stops_calling"],
            env={"ROLLCALL_JOB": job, "ROLLCALL_TENANT": tenant}))

    def token(self, tenant):
        return (self.folder / tenant).read_text().strip()

    def get(self, tenant, path, accept="*/*"):
        """(status, body) for the viewer of that tenant."""
        request = urllib.request.Request(f"{self.daemon.page}{path}", headers={
            "Authorization": f"Bearer {self.token(tenant)}", "Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                # The page itself comes compressed.
                return answer.status, without_time(answer.read().decode(errors="replace"))
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def first_event(self, tenant, job):
        request = urllib.request.Request(f"{self.daemon.page}/api/v1/events?job={job}", headers={
            "Authorization": f"Bearer {self.token(tenant)}"})
        with urllib.request.urlopen(request, timeout=120) as stream:
            return [stream.readline(), stream.readline()]

    def incident(self, tenant):
        """The confirmed incident of the tenant's only job; None: not yet."""
        found = json.loads(self.get(tenant, "/api/v1/incidents")[1])["incidents"]
        return next((i for i in found if i.get("confirmed_at")), None)

    def ask(self, tenant, *command):
        return rollcall(*command, f"--daemon={self.daemon.address}",
                        f"--token-file={self.folder / tenant}")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tenants")
    for tenant in ("alpha", "beta"):
        made = rollcall("token", "new", f"--file={folder / 'tokens'}", f"--name={tenant}",
                        "--role=viewer", f"--tenant={tenant}")
        (folder / tenant).write_text(made.stdout)
        os.chmod(folder / tenant, 0o600)
    daemon = Service([ROLLCALL.parent / "rollcalld", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                      "--hang-after=3s", f"--report-dir={folder / 'reports'}",
                      f"--token-file={folder / 'tokens'}"])
    daemon.address, daemon.page = daemon.read_until(
        r"agents on (127\.0\.0\.1:\d+), pages on (http://127\.0\.0\.1:\d+)/").groups()
    made = Site(daemon, folder)
    made.add("alpha", OWN)
    made.add("beta", OTHER)
    try:
        wait_for(lambda: made.incident("alpha") and made.incident("beta"))
        yield made
    finally:
        for service in (*made.jobs, daemon):
            service.kill()


LISTS = ["/api/v1/jobs", "/api/v1/status", "/api/v1/incidents", "/metrics", "/", "/api/v1/whoami"]
OF_A_JOB = ["/api/v1/status?job={}", "/api/v1/job?job={}", "/api/v1/job?job={}&tenant=beta",
            "/api/v1/job?job={}&attempt=0", "/api/v1/calls?job={}", "/api/v1/processes?job={}",
            "/api/v1/incidents?job={}", "/api/v1/incidents?job={}&tenant=beta"]
OF_AN_INCIDENT = ["/api/v1/incident?id={}", "/report?id={}", "/report?id={}&download=1"]


@pytest.mark.parametrize("path", LISTS)
def test_no_list_has_anything_of_another_tenant(site, path):
    status, text = site.get("alpha", path)
    assert status == 200
    for word in (OTHER, "beta", site.incident("beta")["id"]):
        assert word not in text, text
    if path.startswith("/api/v1/whoami") or path == "/":
        return
    assert OWN in text and OTHER in site.get("beta", path)[1]


@pytest.mark.parametrize("path", OF_A_JOB)
def test_a_job_of_another_tenant_is_as_one_that_never_was(site, path):
    status, text = site.get("alpha", path.format(OTHER))
    never = site.get("alpha", path.format(NEVER))
    assert (status, text.replace(OTHER, NEVER)) == never
    assert site.get("beta", path.format(OTHER)) != (status, text)


@pytest.mark.parametrize("path", OF_AN_INCIDENT)
def test_an_incident_of_another_tenant_is_as_one_that_never_was(site, path):
    theirs = site.incident("beta")["id"]
    status, text = site.get("alpha", path.format(theirs))
    assert (status, text.replace(theirs, "x")) == site.get("alpha", path.format("x"))
    assert status == 404 and site.get("beta", path.format(theirs))[0] == 200


# The event of a job carries a number that grows with each change of it.
def test_the_event_stream_of_another_tenants_job_is_as_that_of_none(site):
    assert site.first_event("alpha", OTHER) == site.first_event("alpha", NEVER)
    assert site.first_event("beta", OTHER) != site.first_event("beta", NEVER)


def test_the_command_line_shows_nothing_of_another_tenant(site):
    theirs = site.incident("beta")["id"]
    for command in (["status"], ["status", "--format=json"], ["incidents"]):
        mine = site.ask("alpha", *command)
        assert mine.returncode == 0 and OWN in mine.stdout, mine.stderr
        assert "beta" not in mine.stdout + mine.stderr
    report = site.ask("alpha", "report", theirs)
    assert report.returncode == 1 and "one_rank" not in report.stdout
    assert report.stderr.replace(theirs, "x") == site.ask("alpha", "report", "x").stderr
    stacks = site.ask("alpha", "stacks", OTHER)
    # Its processes run on this host, under the user who asks: these are shown without the daemon.
    assert (f"no stacks of job {OTHER} from the daemon at {site.daemon.address}: token alpha has the role"
            in stacks.stderr)
    assert "printing only the job's processes on this host" in stacks.stderr
