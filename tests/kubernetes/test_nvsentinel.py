# SPDX-License-Identifier: Apache-2.0
"""A hang that the daemon blames a node for reaches NVSentinel on that node: real daemon, agent and hang,
and a server of NVSentinel's service PlatformConnector on a Unix socket."""
import concurrent.futures
import os
import re
import subprocess
import threading
import time

import grpc
import pytest
from conftest import BUILD, ROOT
from network import wait_for

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
                                   env={**os.environ, **environment})
        process.lines = []
        threading.Thread(target=lambda: process.lines.extend(process.stderr), daemon=True).start()
        running.append(process)
        return process

    yield run
    for process in reversed(running):
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=20)


class Node:
    """A daemon, the agent of node-7 that tells NVSentinel, and the hanging job `program`."""

    def __init__(self, start, folder, program, *flags):
        self.connector = Connector(folder / "nvsentinel.sock")
        self.reports = folder / "reports"
        daemon = start(BUILD / "bin" / "rollcalld", "--config=none", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                       "--hang-after=3s", f"--report-dir={self.reports}")
        address = wait_for(lambda: re.search(r"agents on (127\.0\.0\.1:\d+)", "".join(daemon.lines)))[1]
        segments = folder / "segments"
        segments.mkdir(mode=0o700)
        start(BUILD / "bin" / "rollcall-agent", "--config=none", f"--daemon={address}", f"--dir={segments}",
              "--scope=directory", "--host=node-7", f"--nvsentinel={folder / 'nvsentinel.sock'}", *flags)
        self.job = start(BUILD / "tests" / "ranks", "-n", "4", "--keep-going", "--", BUILD / "tests" / program,
                         LD_PRELOAD=str(BUILD / "lib" / "librollcall.so"), LD_LIBRARY_PATH=str(BUILD / "sim"),
                         ROLLCALL_DIR=str(segments), ROLLCALL_JOB="pretrain")


def test_nvsentinel_learns_of_a_hang_for_which_its_node_is_blamed_and_of_its_end(start, tmp_path):
    node = Node(start, tmp_path, "one_gpu_is_busy", "--nvsentinel-may=remediate")
    told = node.connector.told
    wait_for(lambda: any("isFatal: true" in event for event in told))
    mark = told[-1]
    for part in ('agent: "rollcall"', 'checkName: "RollcallTrainingHang"', 'nodeName: "node-7"',
                 "processingStrategy: EXECUTE_REMEDIATION", "recommendedAction: CONTACT_SUPPORT",
                 'errorCode: "blocked_before_start"'):
        assert part in mark, mark
    incident = re.search(r'entityValue: "(.+)"', mark)[1]
    before = len(told)
    node.job.terminate()
    wait_for(lambda: len(told) > before, 120)
    end = told[before]
    assert "isHealthy: true" in end and f'entityValue: "{incident}"' in end and "isFatal" not in end


def test_a_mistake_of_the_program_is_no_news_for_nvsentinel(start, tmp_path):
    node = Node(start, tmp_path, "one_rank_stops_calling")
    wait_for(lambda: list(node.reports.glob("*/incident.json")))
    time.sleep(3)
    assert node.connector.told == []
