# SPDX-License-Identifier: Apache-2.0
"""Clusters for the tests: one with everything, which most tests share, and others with a setting of
their own. Jobs run as nobody; Slurm, agent and daemon as root."""
import json
import pathlib
import shutil
import tempfile

import pytest
from cluster import USER, Cluster, why_not

# Each task is a rank; the ranks share the id of their communicator through a file of the job.
VICTIM = ("RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS "
          "ROLLCALL_TEST_ID_FILE=/mnt/id-$SLURM_JOB_ID-${{SLURM_RESTART_COUNT:-0}}-$SLURM_STEP_ID "
          "LD_LIBRARY_PATH=/usr/lib/rollcall/sim exec /usr/lib/rollcall/tests/{name}")

PLUGSTACK = "optional /usr/lib/rollcall/slurm/spank_rollcall.so {arguments}\n"


def pytest_collection_modifyitems(items):
    for item in items:
        if "make_cluster" in item.fixturenames and item.path.name != "test_hang.py":
            item.add_marker(pytest.mark.long)


def victim(name, flags="-n2 -N2"):
    """A line of a batch script that starts a job of ranks."""
    return f"srun {flags} sh -c '{VICTIM.format(name=name)}'"


class Site(Cluster):
    """A cluster with rollcalld and a rollcall-agent, which serves both nodes: they are one host. It calls
    itself n2, where the ranks at fault run."""

    POLICY = """\
on-hang: observe
on-hang.requeues: comment requeue
on-hang.drains: drain, cancel
drain-causes: missing_rank
requeue-most: 1
reports: /tmp/site/reports
"""

    def start_rollcall(self, *daemon_flags, agent_flags=()):
        (self.tmp / "policy.yaml").write_text(self.POLICY)
        self.run("sh", "-c", "mkdir -p /tmp/site && cd /tmp/site && "
                 "/usr/lib/rollcall/bin/rollcall token new --file=tokens --name=jobs --role=viewer > /run/viewer && "
                 f"chgrp {USER} /run/viewer && chmod 0640 /run/viewer")
        self.start("/usr/lib/rollcall/bin/rollcalld", f"--listen=127.0.0.1:{self.daemon_port}", "--http=none",
                   "--hang-after=3s", "--report-dir=/tmp/site/reports", "--token-file=/tmp/site/tokens",
                   "--alert=exec=/usr/lib/rollcall/slurm/on-hang --config=/tmp/policy.yaml 2>> /tmp/on-hang.log",
                   *daemon_flags, log="rollcalld")
        self.start("/usr/lib/rollcall/bin/rollcall-agent", f"--daemon=127.0.0.1:{self.daemon_port}",
                   "--host-facts=off", *agent_flags, env={"SLURMD_NODENAME": "n2"}, log="rollcall-agent")

    def ask(self, *arguments):
        """rollcall ARGUMENTS --format=json"""
        done = self.run("/usr/lib/rollcall/bin/rollcall", *arguments, "--format=json",
                        env={"ROLLCALL_DAEMON": f"127.0.0.1:{self.daemon_port}"}, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def incidents(self, name=None):
        """Those of a job, or of all; the oldest first."""
        found = self.ask("incidents", *([name] if name else [])).get("incidents", [])
        return list(reversed(found))

    def wait_for_incident(self, name, state="confirmed", attempt=None):
        def find():
            return [incident for incident in self.incidents(name)
                    if incident["state"] == state and attempt in (None, incident.get("attempt", 0))]
        return self.wait(find, tell=lambda: f"{self.incidents()}")[0]


WATCHED = PLUGSTACK.format(arguments="daemon={daemon} token-file=/run/viewer")


@pytest.fixture(scope="session")
def site(make_cluster):
    cluster = make_cluster(Site, plugstack=WATCHED)
    cluster.start_rollcall()
    return cluster


@pytest.fixture(scope="session")
def make_cluster():
    """make_cluster(kind=Cluster, **settings): runs until the end of the tests."""
    if reason := why_not():
        pytest.fail(reason)
    made, folders = [], []

    def make(kind=Cluster, **settings):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="rollcall-slurm-", dir="/tmp"))
        folder.chmod(0o755)  # jobs are other users
        folders.append(folder)
        made.append(kind(folder, **settings))
        return made[-1]

    yield make
    for cluster in made:
        cluster.end()
    for folder in folders:
        shutil.rmtree(folder)
