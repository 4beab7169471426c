#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a new connection costs the daemon: by TLS and in plaintext, to gRPC's port and to the page.

    tests/bench/handshake_cost.py [BUILD_DIR] [--rounds=7] [--seconds=1] [--clients=2]

Starts two real daemons, one with certificates of `rollcall pki` (P-256) and one without, and lets
client processes connect one time after the other: a connection counts once the daemon has answered
on it, with its HTTP/2 settings or with /healthz. Each round measures all ways in turn. Prints the
medians, and the daemon's own CPU time for a connection, in which the clients have no part.
"""
import argparse
import multiprocessing
import pathlib
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fleet"))
from fleet_case import Daemon

HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
FRAME_HEAD = 9  # bytes


def cpu_seconds(pid):
    """All threads of the process, to the nanosecond: the kernel's clock of its CPU time."""
    return time.clock_gettime(~pid << 3 | 2)


def make_certificates(build, folder):
    for arguments in (["init"], ["issue", "--role=daemon", "--host=127.0.0.1"],
                      ["issue", "--role=agent", "--host=node-1"]):
        subprocess.run([build / "bin" / "rollcall", "pki", arguments[0], folder, *arguments[1:]],
                       check=True, stdout=subprocess.DEVNULL)


def make_context(folder, shows_certificate):
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    context.set_alpn_protocols(["h2"])
    if shows_certificate:
        context.load_cert_chain(folder / "node-1.crt", folder / "node-1.key")
    return context


def connect_once(address, request, context):
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The port is free again at once.
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link = context.wrap_socket(plain, server_hostname=host) if context else plain
        with link:
            link.sendall(request)
            if len(link.recv(4096)) < FRAME_HEAD:
                raise SystemExit(f"no answer of {address}")


def connect_for(seconds, address, request, folder, shows_certificate, count):
    context = make_context(folder, shows_certificate) if folder else None
    connect_once(address, request, context)
    until, done = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        connect_once(address, request, context)
        done += 1
    count.put(done)


def measure(daemon, seconds, clients, way):
    """Connections a second, and milliseconds of the daemon's CPU for each."""
    count = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=connect_for, args=(seconds, *way, count))
               for _ in range(clients)]
    spent = cpu_seconds(daemon.process.pid)
    for worker in workers:
        worker.start()
    done = sum(count.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    spent = cpu_seconds(daemon.process.pid) - spent
    return done / seconds, 1000 * spent / (done + clients)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--clients", type=int, default=2)
    options = parser.parse_args()
    build = options.build.resolve(strict=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_certificates(build, folder / "pki")
        for kind in ("plain", "tls"):
            (folder / kind).mkdir()
        plain = Daemon(build, folder / "plain", 60)
        tls = Daemon(build, folder / "tls", 60, (
            f"--tls-cert={folder}/pki/daemon.crt", f"--tls-key={folder}/pki/daemon.key",
            f"--tls-client-ca={folder}/pki/ca.crt"))
        ways = {
            "gRPC, plaintext": (plain, (plain.listen, HTTP2, None, False)),
            "gRPC, TLS": (tls, (tls.listen, HTTP2, folder / "pki", False)),
            "gRPC, TLS, certificates on both sides": (tls, (tls.listen, HTTP2, folder / "pki", True)),
            "page, plaintext": (plain, (plain.page, HEALTH, None, False)),
            "page, TLS": (tls, (tls.page, HEALTH, folder / "pki", False)),
            "page, TLS, certificates on both sides": (tls, (tls.page, HEALTH, folder / "pki", True)),
        }
        results = {way: [] for way in ways}
        try:
            for _ in range(options.rounds):
                for way, (daemon, how) in ways.items():
                    results[way].append(measure(daemon, options.seconds, options.clients, how))
        finally:
            plain.end()
            tls.end()
    print(f"{'new connections':40s} {'a second':>9s} {'daemon ms each':>15s} {'a core could':>13s}")
    for way, all_rounds in results.items():
        rate = statistics.median(r for r, _ in all_rounds)
        cost = statistics.median(c for _, c in all_rounds)
        print(f"{way:40s} {rate:9.0f} {cost:15.3f} {1000 / cost:13.0f}", flush=True)
    print(f"medians of {options.rounds} rounds; {options.clients} clients on the same machine")


main()
