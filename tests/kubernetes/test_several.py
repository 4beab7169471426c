# SPDX-License-Identifier: Apache-2.0
"""Several daemons with the flags and certificates of the chart, under the names that the cluster's DNS
would have, on one PostgreSQL: they trust each other, and each answers for all."""
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
from conftest import BUILD, ROLLCALL, find, render, write_secret
from network import Network, can_be_alone, wait_for

POSTGRES = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), default=None,
               key=lambda path: int(path.parent.name))
VALUES = {"daemon": {"replicas": 3, "storeSecret": "rollcall-store", "hangAfter": "5s"},
          "access": {"tokenSecret": "rollcall-tokens"}, "injection": {"mode": "none"}}
# What the DNS of a cluster says of the StatefulSet and its Service.
NAMES = "".join(f"127.0.0.{i + 1} rollcall-daemon-{i}.rollcall-daemons.rollcall.svc rollcall-daemons.rollcall.svc\n"
                for i in range(3))
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(POSTGRES is None, reason="no PostgreSQL server is installed:  apt-get install postgresql"),
    pytest.mark.skipif(not can_be_alone(), reason="needs root, and network and mount namespaces")]


class Cluster(Network):
    """The network, with PostgreSQL."""

    def __init__(self, folder):
        super().__init__(folder, NAMES)
        # Short, because it holds a socket; of the server's user, who is not root.
        self.database = pathlib.Path(tempfile.mkdtemp(prefix="rollcall-several-", dir="/tmp"))
        self.database.chmod(0o777)

    def start_postgres(self):
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if subprocess.run([*user, "true"], capture_output=True).returncode != 0:
            user = ["unshare", "--user", "--map-user=65534", "--map-group=65534"]
        subprocess.run([*user, POSTGRES / "initdb", f"--pgdata={self.database / 'data'}", "--username=rollcall",
                        "--encoding=UTF8", "--no-locale", "--no-sync", "--auth=trust"], check=True,
                       capture_output=True, cwd="/", timeout=300)
        self.start("postgres", *user, POSTGRES / "postgres", "-D", self.database / "data", "-k", self.database,
                   "-c", "listen_addresses=", "-c", "shared_buffers=16MB", "-c", "fsync=off")
        wait_for(lambda: self.sql("CREATE DATABASE rollcall", "postgres"))
        return f"postgresql://rollcall@/rollcall?host={self.database}"

    def sql(self, text, database="rollcall"):
        return subprocess.run([POSTGRES / "psql", "-XAtq", "-h", self.database, "-U", "rollcall", "-d", database,
                               "-c", text], capture_output=True, timeout=120, check=False).returncode == 0

    def end(self):
        super().end()
        shutil.rmtree(self.database, ignore_errors=True)


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    try:
        made.await_names()
        yield made
    finally:
        made.end()


def make_token(folder, role, *flags):
    made = subprocess.run([ROLLCALL, "token", "new", f"--file={folder / 'tokens'}", f"--name={role}",
                           f"--role={role}", *flags], capture_output=True, text=True, check=True)
    file = folder / f"{role}.token"
    file.write_text(made.stdout)
    file.chmod(0o600)
    return file


def test_the_daemons_of_the_chart_trust_each_other_and_each_answers_for_all(cluster, tmp_path):
    documents = render(VALUES)
    tls = write_secret(documents, "rollcall-daemons-tls", tmp_path / "tls")
    agent_token = make_token(tmp_path, "agent", "--host=*")
    viewer_token = make_token(tmp_path, "viewer")
    store = tmp_path / "url"
    store.write_text(cluster.start_postgres())
    store.chmod(0o600)
    account = tmp_path / "account"  # of the daemon; the API server is away
    account.mkdir()
    (account / "token").write_text("token")
    (account / "ca.crt").write_bytes((tls / "ca.crt").read_bytes())
    files = {"/tls/": f"{tls}/", "@/store/url": f"@{store}", "/tokens/tokens": str(tmp_path / "tokens"),
             "/var/run/secrets/kubernetes.io/serviceaccount": str(account)}

    def flags_of(container, **more):
        flags = " ".join(container["args"])
        for inside, here in {**files, **more}.items():
            flags = flags.replace(inside, here)
        return flags.split(" ")

    daemon, = find(documents, "StatefulSet")["spec"]["template"]["spec"]["containers"]
    for i in range(3):
        cluster.start(f"daemon-{i}", *cluster.inside(BUILD / "bin" / "rollcalld", *flags_of(daemon, **{
            "$(POD_NAME)": f"rollcall-daemon-{i}", "0.0.0.0": f"127.0.0.{i + 1}",
            "/var/lib/rollcall": str(tmp_path / f"state-{i}")})), env=cluster.environment)
    for i in range(3):
        wait_for(lambda: "agents on" in (tmp_path / f"daemon-{i}.log").read_text())
    agent, = find(documents, "DaemonSet")["spec"]["template"]["spec"]["containers"]
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)
    cluster.start("agent", *cluster.inside(BUILD / "bin" / "rollcall-agent", *flags_of(agent, **{
        "$(NODE_NAME)": "node-7", "/token/token": str(agent_token)}), f"--dir={segments}", "--scope=directory"),
        env=cluster.environment)
    cluster.start("job", *cluster.inside(
        "env", f"LD_PRELOAD={BUILD / 'lib' / 'librollcall.so'}", f"LD_LIBRARY_PATH={BUILD / 'sim'}",
        f"ROLLCALL_DIR={segments}", "ROLLCALL_JOB=a-job", BUILD / "tests" / "ranks", "-n", "2", "--keep-going",
        "--", BUILD / "tests" / "one_rank_stops_calling"), env=cluster.environment)

    for i in range(3):
        status = [ROLLCALL, "status", f"--daemon=rollcall-daemon-{i}.rollcall-daemons.rollcall.svc:7655",
                  f"--tls-ca={tls / 'ca.crt'}", f"--token-file={viewer_token}"]
        said = wait_for(lambda: (done := cluster.run(*status)).returncode == 0 and
                        re.search(r"\ba-job\b.*", done.stdout) and done.stdout)
        assert "does not answer" not in said
