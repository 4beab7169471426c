# SPDX-License-Identifier: Apache-2.0
"""Hangs in datagrams between ranks, which nobody sends again."""

import socket
import time

from common import Hub, main, program, publish, rounds, wait_for_file


@program
def datagram_is_lost(args):
    """Rank 0 tells each rank its step by a datagram. The one for rank 2 goes to a port at which nobody is."""
    hub = Hub(args)
    number, pause = rounds(args, 3)
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind(("127.0.0.1", 0))
    publish(f"port-{args.rank}", str(own.getsockname()[1]))
    ports = [int(wait_for_file(f"port-{rank}")) for rank in range(args.ranks)]
    for step in range(number):
        if args.rank == 0:
            time.sleep(pause)
            for rank in range(1, args.ranks):
                lost = step == 4 and rank == 2 and not args.fixed
                own.sendto(b"step %d" % step, ("127.0.0.1", 9 if lost else ports[rank]))
        else:
            own.recv(64)  # hangs: datagram_is_lost
        hub.meet()


if __name__ == "__main__":
    main()
