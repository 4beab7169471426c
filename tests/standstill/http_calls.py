# SPDX-License-Identifier: Apache-2.0
"""Hangs in HTTP requests between ranks."""

import http.server
import threading
import time
import urllib.request

from common import compile_kernels, main, program, publish, rounds, wait_for_file


def start_server(args, answer):
    """One thread answers one request at a time."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = answer(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    publish(f"http-{args.rank}", str(server.server_port))


def ask(rank, path):
    """Without a time limit."""
    address = f"http://127.0.0.1:{wait_for_file(f'http-{rank}')}{path}"
    with urllib.request.urlopen(address) as answer:  # hangs: handlers_ask_each_other
        return answer.read()


@program
def handlers_ask_each_other(args):
    """Ranks 0 and 1 answer one request at a time, and their handlers ask each other. Rank 2 asks rank 0."""
    number, pause = rounds(args, 3)

    def answer(path):
        compile_kernels(pause / 2)
        hops = int(path.rpartition("/")[2])
        if hops and args.rank < 2:
            return ask(1 - args.rank, f"/status/{hops - 1}")
        return b"{}"

    start_server(args, answer)
    for step in range(number):
        circle = step == 4 and not args.fixed
        ask(0 if args.rank == 2 else 1 - args.rank, f"/status/{3 if circle else 0}")
    publish(f"left-{args.rank}")
    for rank in range(args.ranks):
        wait_for_file(f"left-{rank}")
    time.sleep(0.5)


if __name__ == "__main__":
    main()
