# SPDX-License-Identifier: Apache-2.0
"""A launcher that exits while the ranks that it has ended still run, as Open MPI's may do.

    hasty_launcher.py FOLDER CMD...     four ranks of CMD; FOLDER is for their unique id

When rank 1 has ended, starts a process that ends the others a moment later, and exits with 1."""
import os
import subprocess
import sys

folder, command = sys.argv[1], sys.argv[2:]
ranks = [subprocess.Popen(command, env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                        "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4",
                                        "ROLLCALL_TEST_ID_FILE": f"{folder}/id"})
         for rank in range(4)]
ranks[1].wait()
others = " ".join(str(rank.pid) for rank in ranks if rank is not ranks[1])
subprocess.Popen(["/bin/sh", "-c", f"sleep 0.5; kill {others}"])
os._exit(1)
