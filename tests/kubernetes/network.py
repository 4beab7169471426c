# SPDX-License-Identifier: Apache-2.0
"""A network of its own with names of its own, as a cluster has them, and the programs in it."""
import functools
import os
import subprocess

import processes

wait_for = functools.partial(processes.wait_for, seconds=90)  # an API server takes its time
ALONE = ["unshare", "--net", "--mount"]


def can_be_alone():
    return os.geteuid() == 0 and subprocess.run(
        [*ALONE, "sh", "-c", "ip link set lo up && mount --bind /etc/hosts /etc/hosts"],
        capture_output=True).returncode == 0


class Network:
    """`names`: lines of /etc/hosts. `addresses`: a range whose addresses all are this host's, as
    10.96.0.0/16; else only those of the loopback are."""

    def __init__(self, folder, names, addresses=""):
        self.folder, self.processes = folder, []
        hosts = folder / "hosts"
        hosts.write_text(names)
        more = f"ip route add local {addresses} dev lo && " if addresses else ""
        self.holder = self.start("holder", *ALONE, "sh", "-c",
                                 f'ip link set lo up && {more}mount --bind "$1" /etc/hosts && exec sleep 2000',
                                 "sh", hosts)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("ROLLCALL")}

    def await_names(self):
        """Before anything else."""
        wait_for(lambda: self.run("cmp", self.folder / "hosts", "/etc/hosts").returncode == 0)

    def start(self, name, *command, env=None):
        log = open(self.folder / f"{name}.log", "w")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd="/")
        self.processes.append(process)
        return process

    def inside(self, *command):
        return ["nsenter", f"--target={self.holder.pid}", "--net", "--mount", "--", *map(str, command)]

    def run(self, *command, **options):
        return subprocess.run(self.inside(*command), capture_output=True, text=True, timeout=120,
                              env=self.environment, check=False, cwd="/", **options)

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=120)
