# SPDX-License-Identifier: Apache-2.0
"""A receiver of alerts, which keeps each alert that it has taken."""
import http.server
import json
import threading
import time


class Receiver:
    def __init__(self, address=("127.0.0.1", 0)):
        self.taken = []      # (time, key, body)
        self.refused = []    # the same of each try that it has refused
        self.refuses = False  # answers 503, and takes nothing
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                alerts = receiver.refused if receiver.refuses else receiver.taken
                alerts.append((time.monotonic(), self.headers["Idempotency-Key"], body))
                self.send_response(503 if receiver.refuses else 200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(address, Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.1,), daemon=True)
        self.thread.start()

    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/"

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
