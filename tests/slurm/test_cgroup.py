# SPDX-License-Identifier: Apache-2.0
"""proctrack/cgroup: Slurm ends a job when no process of it is left in its control group. The watcher, which
srun starts, is one of them."""
import os
import pathlib
import re
import time

import pytest
from conftest import WATCHED, Site, victim

FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")

pytestmark = pytest.mark.skipif(
    not os.access(FREEZER, os.W_OK),
    reason="needs control groups of version 1, because those of version 2 need systemd")


@pytest.fixture(scope="module")
def grouped(make_cluster):
    made = make_cluster(Site, plugstack=WATCHED, proctrack="cgroup",
                        files=[("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")])
    made.start_rollcall()
    yield made
    made.end()
    for node in ("n1", "n2"):
        for folder in sorted((FREEZER / f"slurm_{node}").glob("**/"), reverse=True):
            folder.rmdir()


def test_a_watched_job_ends_with_its_script(grouped):
    begun = time.monotonic()
    assert grouped.run_job(victim("healthy_mix"), "--rollcall", "-n2", "-N2") == ""
    assert time.monotonic() - begun < 50


def test_a_hang_is_named_and_the_step_ended(grouped):
    number = grouped.submit(f"{victim('one_rank_stops_calling')}\necho the step ended with $?",
                            "--rollcall=abort", "-n2", "-N2")
    grouped.wait_for_end(number)
    assert "rank 1" in grouped.output(number) and re.search("the step ended with [1-9]", grouped.output(number))
    assert "rollcall: /mnt/rollcall-reports/" in grouped.job(number)["Comment"]
