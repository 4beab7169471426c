# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of a program as processes of their own.

    launch.py -n RANKS [--absent RANK] [--told RANK:SIZE] [--unnamed] -- CMD...

--absent: a rank that the others count and nobody starts. --told: a rank with another WORLD_SIZE. --unnamed: /proc shows
no variable of a launcher; the programs of this folder find them in another one (common.py). No rank gets a signal when
another one fails. Exits with the first exit code that is not 0.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys

from common import UNNAMED, end_with_parent


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", dest="ranks", type=int, required=True)
    parser.add_argument("--absent", type=int, default=-1)
    parser.add_argument("--told", default="-1:0")
    parser.add_argument("--unnamed", action="store_true")
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(args, rank, port):
    told, size = map(int, args.told.split(":"))
    place = dict(RANK=str(rank), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(args.ranks),
                 WORLD_SIZE=str(size if rank == told else args.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    env = dict(os.environ, OMP_NUM_THREADS="1", **({UNNAMED: json.dumps(place)} if args.unnamed else place))
    return subprocess.Popen(args.command, env=env, preexec_fn=end_with_parent)


def main():
    args = parse_arguments()
    port = free_port()
    ranks = [start(args, rank, port) for rank in range(args.ranks) if rank != args.absent]

    def end_all(*_):
        for rank in ranks:
            rank.kill()

    signal.signal(signal.SIGTERM, end_all)
    signal.signal(signal.SIGINT, end_all)
    codes = [rank.wait() for rank in ranks]
    failed = next((code for code in codes if code), 0)
    sys.exit(failed if failed >= 0 else 128 - failed)


if __name__ == "__main__":
    main()
