# SPDX-License-Identifier: Apache-2.0
"""Standstills of five kinds, in programs of Python's own libraries: a pipe, a socket, a queue, a file lock and a lock
between threads. All other kinds, and the programs without their mistakes: tests/standstill/."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "standstill"))
from cases import CASES
from checks import check_verdict

FIRST = ("child_pipes.keeps_the_write_end", "sockets.body_is_too_short", "queues.producer_stops",
         "files.waits_under_the_lock", "threads.two_locks_in_two_orders")


@pytest.mark.parametrize("row", [row for row in CASES if row.program in FIRST], ids=lambda row: row.program)
def test_a_standstill_is_told(row, tmp_path, record_property):
    check_verdict(row, tmp_path, record_property, hang_after=5)
