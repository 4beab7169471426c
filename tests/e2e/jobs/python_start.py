# SPDX-License-Identifier: Apache-2.0
"""A rank that never comes to NCCL: rank 0 is busy, the others wait for it in torch's store."""

import os
import time


def _store_based_barrier():
    time.sleep(60)


def make_the_data_set():
    time.sleep(60)


if os.environ["RANK"] == "0":
    make_the_data_set()
else:
    _store_based_barrier()
