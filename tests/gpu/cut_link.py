# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces with a link between them that can be cut. As root."""
import os
import pathlib
import shutil
import subprocess
import time

NAMES = ("rcgpu0", "rcgpu1")
ADDRESSES = ("198.18.77.1", "198.18.77.2")  # of the range for tests of networks (RFC 2544)

# What drops all that leaves through a device, and what lets it pass again. The first that works is used.
WAYS = {
    "nft": (["nft add table inet rcgpu", "nft add chain inet rcgpu out {{ type filter hook output priority 0 ; }}",
             "nft add rule inet rcgpu out oifname {device} drop"],
            ["nft delete table inet rcgpu"]),
    "iptables": (["iptables --append OUTPUT --out-interface {device} --jump DROP"],
                 ["iptables --delete OUTPUT --out-interface {device} --jump DROP"]),
    "netem": (["tc qdisc add dev {device} root netem loss 100%"], ["tc qdisc delete dev {device} root"]),
}


class Lacking(Exception):
    """What this machine lacks."""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Lacking(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")


class TwoNetworks:
    """Side 0 and side 1. way: the key of WAYS that cuts the link; None takes the first that works here."""

    def __init__(self, way=None):
        if os.geteuid() != 0:
            raise Lacking("network namespaces need root")
        for tool in ("unshare", "nsenter", "ip"):
            if shutil.which(tool) is None:
                raise Lacking(f"{tool} is not installed")
        self.holders = []
        try:
            self.holders += [self._hold(), self._hold()]
            self._join()
            self.way = way or self._find_way()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        """The namespaces go with their last processes, and the link with them."""
        for holder in self.holders:
            holder.kill()
            holder.wait()

    @staticmethod
    def _hold():
        """A process that has a network namespace of its own."""
        holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stderr=subprocess.PIPE, text=True,
                                  stdin=subprocess.DEVNULL)
        own = os.readlink("/proc/self/ns/net")
        while holder.poll() is None:
            its = pathlib.Path(f"/proc/{holder.pid}/ns/net")
            if os.readlink(its) != own:
                return holder
            time.sleep(0.01)
        raise Lacking(f"unshare --net: {holder.stderr.read().strip()}")

    def enter(self, side):
        """What a command begins with that runs on this side."""
        return ["nsenter", f"--target={self.holders[side].pid}", "--net"]

    def _join(self):
        run([*self.enter(0), "ip", "link", "add", "name", NAMES[0], "type", "veth", "peer", "name", NAMES[1],
             "netns", str(self.holders[1].pid)])
        for side in (0, 1):
            run([*self.enter(side), "ip", "address", "add", f"{ADDRESSES[side]}/30", "dev", NAMES[side]])
            for device in ("lo", NAMES[side]):
                run([*self.enter(side), "ip", "link", "set", device, "up"])

    def _find_way(self):
        why = []
        for way in WAYS:
            try:
                self._do(way, 0, 0)
                self._do(way, 1, 0)
                return way
            except (Lacking, OSError) as error:
                why.append(str(error))
        raise Lacking("no way to cut a link works here: " + "; ".join(why))

    def _do(self, way, which, side):
        for command in WAYS[way][which]:
            if shutil.which(command.split()[0]) is None:
                raise Lacking(f"{command.split()[0]} is not installed")
            run([*self.enter(side), *command.format(device=NAMES[side]).split()])

    def cut(self):
        """Nothing that one side sends gets to the other, in both directions. No end is told."""
        for side in (0, 1):
            self._do(self.way, 0, side)

    def restore(self):
        for side in (0, 1):
            self._do(self.way, 1, side)
