# SPDX-License-Identifier: Apache-2.0
from concurrent import futures

import grpc

server = grpc.server(futures.ThreadPoolExecutor(4))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
channel = grpc.insecure_channel(f"127.0.0.1:{port}")
grpc.channel_ready_future(channel).result()
print("ready", flush=True)
server.wait_for_termination()
