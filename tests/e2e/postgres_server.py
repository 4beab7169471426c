# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of a test's own, on a port of 127.0.0.1. initdb refuses root, so under root the
server is that of the user nobody."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from conftest import AS_NOBODY, can_be_others
from processes import free_port

PROGRAMS = (pathlib.Path(os.environ["ROLLCALL_POSTGRES"]) if "ROLLCALL_POSTGRES" in os.environ else
            max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), default=None,
                key=lambda path: int(path.parent.name)))
PASSWORD = "b52-secret"


class PostgresServer:
    """A server with a database and a user `rollcall`, who needs a password.

    disk: megabytes for the tables, on a file system of their own.
    primary: another server, which this one follows until it is promoted.
    """

    def __init__(self, disk=None, primary=None):
        if PROGRAMS is None:
            pytest.skip("no PostgreSQL server is installed:  apt-get install postgresql")
        if os.geteuid() == 0 and not can_be_others():
            pytest.skip("PostgreSQL does not run as root, and this user cannot become another one")
        self.before = AS_NOBODY if os.geteuid() == 0 else []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rollcall-postgres-", dir="/tmp"))
        if self.before:
            os.chown(self.folder, 65534, 65534)
        self.port = free_port()
        self.process = None
        self.disk = disk
        self.small = self.folder / "small"
        if primary is not None:
            self._run("pg_basebackup", f"--dbname=postgresql://rollcall@127.0.0.1:{primary.port}/",
                      f"--pgdata={self.folder / 'data'}", "--write-recovery-conf", "--checkpoint=fast",
                      "--no-sync", env={**os.environ, **self.environment})
            self.start()
            return
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._run("initdb", f"--pgdata={self.folder / 'data'}", "--username=rollcall", "--encoding=UTF8",
                  "--no-locale", "--no-sync", "--auth=scram-sha-256", f"--pwfile={password}")
        self.start()
        self.sql("CREATE DATABASE rollcall", database="postgres")
        if disk:
            self.sql(f"CREATE TABLESPACE small LOCATION '{self.small}'", database="postgres")
            self.sql("ALTER DATABASE rollcall SET default_tablespace = small", database="postgres")

    def _run(self, program, *arguments, env=None):
        subprocess.run([*self.before, PROGRAMS / program, *arguments], check=True, capture_output=True,
                       cwd="/", timeout=120, env=env)

    @property
    def url(self):
        return f"postgresql://rollcall@127.0.0.1:{self.port}/rollcall"

    @property
    def environment(self):
        return {"PGPASSWORD": PASSWORD}

    def _mount(self):
        """What comes before the server's command, so that it has the small disk."""
        if not self.disk:
            return []
        self.small.mkdir(exist_ok=True)
        mount = (f"mount --make-rprivate / && mount -t tmpfs -o size={self.disk}m,mode=700,uid=65534,gid=65534 "
                 f"small {self.small} && exec \"$@\"")
        command = ["unshare", "--mount", "sh", "-c", mount, "sh"]
        tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            pytest.skip(f"a file system cannot be mounted here: {tried.stderr}")
        return command

    def fill_disk(self):
        """Returns the path of what fills it; unlink() frees it."""
        filler = pathlib.Path(f"/proc/{self.process.pid}/root{self.small}/filler")
        with open(filler, "wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                return filler

    def start(self):
        self.process = subprocess.Popen(
            [*self._mount(), *self.before, PROGRAMS / "postgres", "-D", self.folder / "data", "-k", self.folder, "-p",
             str(self.port), "-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=16MB"],
            stdout=subprocess.DEVNULL, stderr=open(self.folder / "log", "a"), cwd="/")
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.sql("SELECT 1", database="postgres")
            except subprocess.CalledProcessError:
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.1)

    def require_tls(self):
        """From now on it takes connections with TLS only. Returns the file of its authority, which signed its
        certificate, and one of another authority."""
        files = {name: self.folder / f"{name}.crt" for name in ("server", "other")}
        for name, file in files.items():
            self._run_openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                              "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
                              "-keyout", file.with_suffix(".key"), "-out", file)
        for setting, value in (("ssl_cert_file", files["server"]),
                               ("ssl_key_file", files["server"].with_suffix(".key")), ("ssl", "on")):
            self.sql(f"ALTER SYSTEM SET {setting} = '{value}'", database="postgres")
        access = self.folder / "data" / "pg_hba.conf"
        access.write_text(access.read_text().replace("\nhost ", "\nhostssl "))
        self.stop()
        self.start()
        return files["server"], files["other"]

    def _run_openssl(self, *arguments):
        subprocess.run([*self.before, "openssl", *arguments], check=True, capture_output=True, cwd="/", timeout=120)

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        self.process.wait(timeout=120)

    def wait_for_standby(self):
        """A commit waits for the standby from now on, so that nothing is lost with this server."""
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", database="postgres")
        self.sql("SELECT pg_reload_conf()", database="postgres")
        deadline = time.monotonic() + 30
        while self.sql("SELECT sync_state FROM pg_stat_replication", database="postgres") != [["sync"]]:
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.1)

    def promote(self):
        assert self.sql("SELECT pg_promote()", database="postgres") == [["t"]]

    def sql(self, text, database="rollcall"):
        """The answer's lines, as lists of texts."""
        done = subprocess.run(
            [PROGRAMS / "psql", "-X", "-A", "-t", "-F", "\t", "-h", "127.0.0.1", "-p", str(self.port),
             "-U", "rollcall", "-d", database, "-c", text],
            check=True, capture_output=True, text=True, timeout=120, env={**os.environ, **self.environment})
        return [line.split("\t") for line in done.stdout.splitlines()]

    def incidents(self):
        """(id, state, daemon) of every incident, oldest first."""
        return [tuple(row) for row in
                self.sql("SELECT id, state, daemon FROM rollcall.incidents ORDER BY opened_ns")]

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def postgres():
    server = PostgresServer()
    yield server
    server.end()
