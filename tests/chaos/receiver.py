# SPDX-License-Identifier: Apache-2.0
"""A receiver of alerts, which keeps each alert that it has taken."""
import http.server
import json
import threading
import time


class Receiver:
    def __init__(self, address):
        self.taken = []      # (time, key, body)
        self.refuses = False  # answers 503, and takes nothing
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not receiver.refuses:
                    receiver.taken.append((time.monotonic(), self.headers["Idempotency-Key"], body))
                self.send_response(503 if receiver.refuses else 200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(address, Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
