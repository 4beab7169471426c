# SPDX-License-Identifier: Apache-2.0
"""A job of four ranks on the simulated NCCL that trains until FOLDER/hang appears: then rank 3 stops calling.

    trains_until_told.py DEMO_FOLDER FOLDER
"""
import os
import pathlib
import subprocess
import sys
import time

demo_folder, folder = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(demo_folder))
import train as demo  # noqa: E402  the job of `rollcall demo`


def rank_main(rank):
    communicator = demo.Communicator(rank)
    while not (rank == 3 and (folder / "hang").exists()):
        communicator.average_gradients()
        (folder / f"step-{rank}").touch()
        time.sleep(0.02)
    demo.validate()


if "DEMO_RANK" in os.environ:
    rank_main(int(os.environ["DEMO_RANK"]))
else:
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={
        **os.environ, "DEMO_ID_FILE": str(folder / "id"), "DEMO_RANK": str(rank), "RANK": str(rank),
        "WORLD_SIZE": str(demo.RANKS), "LOCAL_RANK": str(rank)}) for rank in range(demo.RANKS)]
    sys.exit(max(abs(process.wait()) for process in ranks))
