# SPDX-License-Identifier: Apache-2.0
"""A daemon with TLS: the plugin's arguments tls-ca and token-file."""
import pytest
from cluster import USER
from conftest import PLUGSTACK, Site, victim

ROLLCALL = "/usr/lib/rollcall/bin/rollcall"
ARGUMENTS = "daemon={daemon} tls-ca=/run/ca.crt token-file="


@pytest.fixture(scope="module")
def closed(make_cluster):
    made = make_cluster(Site, plugstack=PLUGSTACK.format(arguments=f"{ARGUMENTS}/run/viewer"))
    made.run("sh", "-c", f"{ROLLCALL} pki init /run/pki && "
             f"{ROLLCALL} pki issue /run/pki --role=daemon --host=127.0.0.1 && "
             f"{ROLLCALL} pki issue /run/pki --role=agent --host=node && install -m 0644 /run/pki/ca.crt /run/ca.crt")
    made.start_rollcall("--tls-cert=/run/pki/daemon.crt", "--tls-key=/run/pki/daemon.key",
                        "--tls-client-ca=/run/pki/ca.crt",
                        agent_flags=["--tls-ca=/run/pki/ca.crt", "--tls-cert=/run/pki/node.crt",
                                     "--tls-key=/run/pki/node.key", "--host=node"])
    return made


def test_a_step_is_watched_over_tls(closed):
    number = closed.submit(victim("one_rank_stops_calling"), "--rollcall=abort", "-n2", "-N2")
    closed.wait_for_end(number)
    assert "rank 1 (node, pid" in closed.output(number) and "ending the step" in closed.output(number)
    assert "rollcall: /mnt/rollcall-reports/" in closed.job(number)["Comment"]


def test_without_a_token_the_step_runs_and_one_line_says_why(closed):
    closed.set_plugstack(PLUGSTACK.format(arguments=f"{ARGUMENTS}/no/such/token"))
    number = closed.submit(victim("one_rank_stops_calling"), "--rollcall=abort", "-n2", "-N2")
    closed.wait(lambda: "is not watched" in closed.output(number), tell=lambda: closed.output(number))
    assert closed.output(number).count("this step is not watched until the daemon answers: ") == 1
    assert "/no/such/token" in closed.output(number) and closed.job(number)["JobState"] == "RUNNING"
    closed.run("scancel", str(number), user=USER)
    closed.wait_for_state(number, "CANCELLED")
