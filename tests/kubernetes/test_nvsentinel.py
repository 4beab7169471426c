# SPDX-License-Identifier: Apache-2.0
"""A hang that the daemon blames a node for reaches NVSentinel on that node: real daemon, agents and hang,
and servers of NVSentinel's service PlatformConnector on Unix sockets."""
import concurrent.futures
import contextlib
import os
import re
import signal
import subprocess
import threading
import time

import grpc
import pytest
from conftest import BUILD, ROOT
from network import wait_for

pytestmark = pytest.mark.long
METHOD = "/datamodels.PlatformConnector/HealthEventOccurredV1"


class Connector(grpc.GenericRpcHandler):
    """Keeps what it was told, as protoc prints it."""

    def __init__(self, socket):
        self.told = []
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=(self,))
        self.server.add_insecure_port(f"unix:{socket}")
        self.server.start()

    def service(self, call):
        assert call.method == METHOD
        return grpc.unary_unary_rpc_method_handler(self.occurred)

    def occurred(self, message, _):
        text = subprocess.run(
            ["protoc", f"--proto_path={ROOT / 'proto'}", "--decode=datamodels.HealthEvents",
             "nvsentinel/health_event.proto"], input=message, capture_output=True, check=True).stdout.decode()
        self.told.append(text)
        return b""


@pytest.fixture
def start():
    """start(COMMAND, ...): a program that is ended after the test; its .lines are what it says."""
    running = []

    def run(*command, **environment):
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **environment}, start_new_session=True)
        process.lines = []
        threading.Thread(target=lambda: process.lines.extend(process.stderr), daemon=True).start()
        running.append(process)
        return process

    yield run
    for process in reversed(running):
        kill(process)


def kill(process):
    """With its children, which may be frozen."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=120)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_host(root, is_broken):
    """The files of a node as its kernel writes them: with or without a link that went down."""
    write(root / "sys/class/infiniband/mlx5_2/ports/1/state", "1: DOWN\n" if is_broken else "4: ACTIVE\n")
    (root / "sys/class/infiniband/mlx5_2/device").symlink_to("../../../devices/0000:98:00.0")
    now_us = int(time.clock_gettime(time.CLOCK_MONOTONIC_RAW) * 1e6)
    write(root / "dev/kmsg", f"3,2,{now_us},-;mlx5_core 0000:98:00.0 ens3: Link down\n" if is_broken else "")


class Cluster:
    """A daemon, and a hanging job whose even ranks are on node-0 and whose odd ranks are on node-1."""

    def __init__(self, start, folder, program, *flags, is_broken=False):
        self.reports = folder / "reports"
        daemon = start(BUILD / "bin" / "rollcalld", "--config=none", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                       "--hang-after=3s", f"--report-dir={self.reports}")
        address = wait_for(lambda: re.search(r"agents on (127\.0\.0\.1:\d+)", "".join(daemon.lines)))[1]
        self.connectors = []
        for node in (0, 1):
            (folder / f"segments-{node}").mkdir(mode=0o700)
            make_host(folder / f"host-{node}", is_broken and node == 1)
            socket = folder / f"nvsentinel-{node}.sock"
            self.connectors.append(Connector(socket))
            start(BUILD / "bin" / "rollcall-agent", "--config=none", f"--daemon={address}",
                  f"--dir={folder}/segments-{node}", "--scope=directory", f"--host=node-{node}",
                  f"--host-root={folder}/host-{node}", f"--nvsentinel={socket}", *flags)
        self.job = start(BUILD / "tests" / "ranks", "-n", "4", "--keep-going", "--", "sh", "-c",
                         f"export ROLLCALL_DIR={folder}/segments-$((RANK % 2)) "
                         f"LD_PRELOAD={BUILD / 'lib' / 'librollcall.so'}; exec {BUILD / 'tests' / program}",
                         LD_LIBRARY_PATH=str(BUILD / "sim"), ROLLCALL_JOB="pretrain")


def test_a_node_with_broken_hardware_is_marked_until_the_hang_is_over(start, tmp_path):
    cluster = Cluster(start, tmp_path, "one_rank_freezes_in_a_call", "--nvsentinel-may=remediate", is_broken=True)
    healthy, broken = (connector.told for connector in cluster.connectors)
    mark, = wait_for(lambda: [event for event in broken if "isFatal: true" in event])
    for part in ('agent: "rollcall"', 'checkName: "RollcallTrainingHang"', 'nodeName: "node-1"',
                 "processingStrategy: EXECUTE_REMEDIATION", "recommendedAction: CONTACT_SUPPORT",
                 'errorCode: "stalled_in_flight"'):
        assert part in mark, mark
    before = len(broken)
    kill(cluster.job)
    wait_for(lambda: len(broken) > before, seconds=120)
    end = broken[before]
    entity = re.search(r"entityValue: .+", mark)[0]
    assert "isHealthy: true" in end and entity in end and "isFatal" not in end
    assert all("isHealthy: true" in event for event in healthy)


def test_a_node_without_an_error_of_its_hardware_is_not_marked(start, tmp_path):
    told = Cluster(start, tmp_path, "one_gpu_is_busy").connectors[0].told
    event, = wait_for(lambda: [event for event in told if "isHealthy: true" not in event])
    assert 'errorCode: "blocked_before_start"' in event and "isFatal" not in event
    assert "processingStrategy: STORE_ONLY" in event


def test_a_mistake_of_the_program_is_no_news_for_nvsentinel(start, tmp_path):
    cluster = Cluster(start, tmp_path, "one_rank_stops_calling")
    wait_for(lambda: list(cluster.reports.glob("*/incident.json")))
    time.sleep(3)
    assert [connector.told for connector in cluster.connectors] == [[], []]
