# SPDX-License-Identifier: Apache-2.0
"""Agents are back soon after their network, before they count as silent."""
import re
import time
import urllib.request

import pytest
from cluster import Agent, Daemon, Disk, wait_for
from proxy import Proxy

ADDRESS = "127.19.1.1"
AGENTS = 8
BACK_SECONDS = 5
OUTAGE_SECONDS = 4  # in which the pauses between two tries have grown


def count_connected(daemon):
    try:
        metrics = urllib.request.urlopen(f"{daemon.page}/metrics", timeout=2).read().decode()
    except OSError:
        return 0
    return int(re.search(r"^rollcall_agents_connected (\d+)", metrics, re.MULTILINE).group(1))


@pytest.fixture
def network(tmp_path):
    """A daemon, and the proxies of its agents."""
    disk = Disk(tmp_path / "disk")
    daemon = Daemon(tmp_path, ADDRESS, disk, 60, f"http://{ADDRESS}:1/")
    proxies = [Proxy((ADDRESS, 9500 + n), (ADDRESS, Daemon.PORT)) for n in range(AGENTS)]
    agents = [Agent(tmp_path, f"node-{n}", f"{ADDRESS}:{9500 + n}") for n in range(AGENTS)]
    yield daemon, agents, proxies
    for program in [*agents, daemon, disk]:
        program.end()
    for proxy in proxies:
        proxy.close()


def are_back(daemon):
    return count_connected(daemon) == AGENTS


def set_network(proxies, works):
    for proxy in proxies:
        proxy.drops = not works


def test_agents_are_back_within_five_seconds_after_the_network(network):
    daemon, _, proxies = network
    wait_for("all agents connect", 20, lambda: are_back(daemon))
    set_network(proxies, works=False)
    wait_for("no agent is connected", 5, lambda: count_connected(daemon) == 0)
    time.sleep(OUTAGE_SECONDS)
    set_network(proxies, works=True)
    wait_for("all agents are back", BACK_SECONDS, lambda: are_back(daemon))


def test_agents_are_back_though_somebody_sets_their_clocks_back(network):
    daemon, agents, proxies = network
    wait_for("all agents connect", 20, lambda: are_back(daemon))
    for agent in agents:
        agent.clock.step(90)
    time.sleep(1)
    set_network(proxies, works=False)
    wait_for("no agent is connected", 5, lambda: count_connected(daemon) == 0)
    time.sleep(OUTAGE_SECONDS)
    for agent in agents:
        agent.clock.step(0)
    time.sleep(1)
    set_network(proxies, works=True)
    wait_for("all agents are back", BACK_SECONDS, lambda: are_back(daemon))
