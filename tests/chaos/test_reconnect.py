# SPDX-License-Identifier: Apache-2.0
"""Agents are back soon after their network, before they count as silent."""
import concurrent.futures
import contextlib
import re
import time
import urllib.request

import pytest
from cluster import Agent, Daemon, Disk, wait_for
from proxy import Proxy

AGENTS = 8
BACK_SECONDS = 5
OUTAGE_SECONDS = 4  # in which the pauses between two tries have grown


def count_connected(daemon):
    try:
        metrics = urllib.request.urlopen(f"{daemon.page}/metrics", timeout=2).read().decode()
    except OSError:
        return 0
    return int(re.search(r"^rollcall_agents_connected (\d+)", metrics, re.MULTILINE).group(1))


@contextlib.contextmanager
def network(folder, address):
    """A daemon at this address, and its agents with the proxies between."""
    disk = Disk(folder / "disk")
    daemon = Daemon(folder, address, disk, 60, f"http://{address}:1/")
    proxies = [Proxy((address, 9500 + n), (address, Daemon.PORT)) for n in range(AGENTS)]
    agents = [Agent(folder, f"node-{n}", f"{address}:{9500 + n}") for n in range(AGENTS)]
    try:
        yield daemon, agents, proxies
    finally:
        for program in [*agents, daemon, disk]:
            program.end()
        for proxy in proxies:
            proxy.close()


def are_back(daemon):
    return count_connected(daemon) == AGENTS


def set_network(proxies, works):
    for proxy in proxies:
        proxy.drops = not works


def step_clocks(agents, seconds):
    for agent in agents:
        agent.clock.step(seconds)
    time.sleep(1)


def lose_network(folder, address, ahead):
    """Raises an error unless all agents are back in time. Somebody sets their clocks back during the
    outage by so many seconds, which they were ahead before."""
    with network(folder, address) as (daemon, agents, proxies):
        wait_for("all agents connect", 60, lambda: are_back(daemon))
        step_clocks(agents, ahead)
        set_network(proxies, works=False)
        wait_for("no agent is connected", 60, lambda: count_connected(daemon) == 0)
        time.sleep(OUTAGE_SECONDS)
        step_clocks(agents, 0)
        set_network(proxies, works=True)
        wait_for("all agents are back", BACK_SECONDS, lambda: are_back(daemon))


@pytest.fixture(scope="module")
def outages(tmp_path_factory):
    """A future for each outage, by the seconds of lose_network(). They pass at once."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        yield {ahead: pool.submit(lose_network, tmp_path_factory.mktemp("network"), address, ahead)
               for ahead, address in ((0, "127.19.1.1"), (90, "127.19.1.2"))}


def test_agents_are_back_within_five_seconds_after_the_network(outages):
    outages[0].result()


def test_agents_are_back_though_somebody_sets_their_clocks_back(outages):
    outages[90].result()
