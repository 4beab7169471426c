# SPDX-License-Identifier: Apache-2.0
"""The folder in shared memory has a name that everybody knows: another user may have made it first."""
import os
import pathlib
import re
import shutil

import pytest
from conftest import BUILD, Service, needs_another_user

pytestmark = needs_another_user
USUAL = pathlib.Path(f"/dev/shm/rollcall-{os.geteuid()}")


@pytest.fixture
def taken():
    """Another user has made the folder of this user. Nobody else sees this /dev/shm: conftest.py mounts it."""
    shutil.rmtree(USUAL, ignore_errors=True)
    USUAL.mkdir(mode=0o777)
    os.chown(USUAL, 65534, 65534)
    yield USUAL
    for folder in USUAL.parent.glob(f"{USUAL.name}*"):
        shutil.rmtree(folder)


def test_a_job_is_recorded_in_another_folder_and_its_user_is_told(taken, run):
    result = run("one_rank_stops_calling")
    assert result.verdict["cause"] == "missing_rank"
    said = re.search(rf"{taken} belongs to another user; this job's segments are in "
                     rf"{taken}-[0-9a-f]{{8}}\n", result.err)
    assert said, result.err
    assert not list(taken.iterdir())
    assert not list(taken.parent.glob(f"{taken.name}-*")), "the last run removes its folder"


def test_an_agent_of_root_writes_nothing_into_it(taken):
    agent = Service([BUILD / "bin" / "rollcall-agent", "--daemon=127.0.0.1:1"])
    try:
        watched = agent.read_until(r"watching (\S+),")[1]
        assert re.fullmatch(rf"{taken}-[0-9a-f]{{8}}", watched)
        assert not list(taken.iterdir())
    finally:
        agent.kill()


def test_an_agent_of_root_keeps_only_the_right_to_read(tmp_path):
    agent = Service([BUILD / "bin" / "rollcall-agent", "--daemon=127.0.0.1:1", f"--dir={tmp_path}"])
    try:
        agent.read_until("watching")
        status = pathlib.Path(f"/proc/{agent.process.pid}/status").read_text()
        for line in ("CapPrm", "CapEff", "CapBnd"):
            kept = int(re.search(rf"{line}:\s+(\S+)", status)[1], 16)
            # CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYSLOG
            assert kept & ~(1 << 19 | 1 << 2 | 1 << 34 | 1 << 40) == 0, f"{line} {kept:x}"
    finally:
        agent.kill()
