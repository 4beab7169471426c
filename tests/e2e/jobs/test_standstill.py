# SPDX-License-Identifier: Apache-2.0
"""Standstills of five kinds, in programs of Python's own libraries: a pipe, a socket, a queue, a file lock and a lock
between threads; the same without their mistakes, and two that idle. All other kinds: tests/standstill/."""

import concurrent.futures
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[2] / "standstill"))
from cases import CASES, LEFT_ALONE
from checks import check_health, check_verdict

FIRST = ("child_pipes.keeps_the_write_end", "sockets.body_is_too_short", "queues.producer_stops",
         "files.waits_under_the_lock", "threads.two_locks_in_two_orders")
IDLE = ("ordinary.http_server", "engines.idle_engine")


@pytest.mark.parametrize("row", [row for row in CASES if row.program in FIRST], ids=lambda row: row.program)
def test_a_standstill_is_told(row, tmp_path, record_property):
    check_verdict(row, tmp_path, record_property, hang_after=5)


def test_nothing_is_said_of_what_is_slow_or_idle(tmp_path):
    """All at once: they use little of a processor."""
    rows = [row for row in CASES + LEFT_ALONE if row.program in FIRST + IDLE]
    assert len(rows) == len(FIRST + IDLE)
    with concurrent.futures.ThreadPoolExecutor(len(rows)) as threads:
        checks = {row.program: threads.submit(check_health, row, tmp_path / row.program, hang_after=5)
                  for row in rows}
    assert {program: str(check.exception()) for program, check in checks.items() if check.exception()} == {}
