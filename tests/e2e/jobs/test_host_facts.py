# SPDX-License-Identifier: Apache-2.0
"""A job on two "hosts", each with an agent of its own. One host's link has gone down, and nothing in the
job itself says which rank is at fault."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BUILD, Service, reports_in, wait_for

PORT = "sys/class/infiniband/mlx5_2/ports/1"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_host(root, link_down):
    """The files of a host as its kernel writes them."""
    write(root / PORT / "state", "1: DOWN\n" if link_down else "4: ACTIVE\n")
    write(root / PORT / "rate", "400 Gb/sec (4X NDR)\n")
    (root / "sys/class/infiniband/mlx5_2/device").symlink_to("../../../devices/0000:98:00.0")
    write(root / "sys/class/net/ens3/carrier", "0\n" if link_down else "1\n")
    (root / "sys/class/net/ens3/device").symlink_to("../../../devices/0000:98:00.0")
    now_us = int(time.clock_gettime(time.CLOCK_MONOTONIC_RAW) * 1e6)
    log = f"6,1,{now_us},-;IPv6: ADDRCONF(NETDEV_CHANGE): ens3: link becomes ready\n"
    if link_down:
        log += f"3,2,{now_us},-;mlx5_core 0000:98:00.0 ens3: Link down\n"
    write(root / "dev/kmsg", log)


@contextlib.contextmanager
def two_hosts(daemon, tmp_path, victim, programs=BUILD / "bin"):
    """A job of four ranks: the even ones on node-0, the odd ones on node-1, whose link is down."""
    agents = []
    for host in (0, 1):
        segments = tmp_path / f"segments-{host}"
        segments.mkdir(mode=0o700, parents=True)
        make_host(tmp_path / f"host-{host}", link_down=host == 1)
        agents.append(Service([
            programs / "rollcall-agent", f"--daemon={daemon.address}", f"--dir={segments}",
            "--scope=directory", f"--host=node-{host}", f"--host-root={tmp_path / f'host-{host}'}"]))
    job = subprocess.Popen(
        [BUILD / "tests" / "ranks", "-n", "4", "--keep-going", "--", "sh", "-c",
         f"export ROLLCALL_DIR={tmp_path}/segments-$((RANK % 2));"
         f"export LD_PRELOAD={BUILD}/lib/librollcall.so; exec {BUILD}/tests/{victim}"],
        env={**os.environ, "LD_LIBRARY_PATH": str(BUILD / "sim"), "ROLLCALL_JOB": "a-job"},
        start_new_session=True)
    try:
        yield job
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait(timeout=120)
        for agent in agents:
            agent.kill()


def report_of(tmp_path):
    """The incident of the only report, once it has facts about both hosts."""
    def find():
        for folder in reports_in(tmp_path / "daemon-reports"):
            incident = json.loads((folder / "incident.json").read_text())
            if incident["host_facts_total"] == 2:
                return folder, incident
        return None
    return wait_for(find)


def test_the_host_whose_link_went_down_is_the_culprit(daemon, tmp_path):
    with two_hosts(daemon, tmp_path, "one_rank_freezes_in_a_call"):
        folder, incident = report_of(tmp_path)
    verdict = incident["verdicts"][0]
    assert verdict["cause"] == "stalled_in_flight", verdict
    assert {1} <= {c["rank"] for c in verdict["culprits"]} <= {1, 3}, verdict
    lines = [line for line in verdict["evidence"] if line.startswith("node-")]
    assert any(line.startswith("node-1: mlx5_2 port 1 went DOWN ") for line in lines), lines
    assert all(line.endswith("; the other host shows nothing like it") for line in lines), lines
    assert verdict["advice"][0]["id"] == "check-link"
    assert "`ibstat mlx5_2 1`" in verdict["advice"][0]["text"]
    facts = {host["host"]: [fact["kind"] for fact in host["facts"]] for host in incident["host_facts"]}
    assert set(facts["node-1"]) >= {"link_down", "ib_port"}
    assert "link_down" not in facts["node-0"]
    assert "node-1: mlx5_2 port 1 went DOWN" in (folder / "report.txt").read_text()


@pytest.mark.long
def test_agents_of_a_healthy_job_look_at_nothing(daemon, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    shutil.copy(BUILD / "bin" / "rollcall-agent", programs)
    for name in ("rollcall-probe", "rollcall-probe-nvml"):
        write(programs / name, f"#!/bin/sh\necho {name} >> {tmp_path}/started\n")
        (programs / name).chmod(0o700)
    with two_hosts(daemon, tmp_path, "healthy_mix", programs) as job:
        assert job.wait(timeout=120) == 0
    assert not (tmp_path / "started").exists()
    with two_hosts(daemon, tmp_path / "again", "one_rank_stops_calling", programs):
        wait_for((tmp_path / "started").exists)  # else the test above cannot fail
