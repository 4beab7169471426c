# SPDX-License-Identifier: Apache-2.0
"""A process that has imported PyTorch and more once, and forks the ranks of small programs."""

import subprocess
import sys
import time

from hang_cases import HERE

LAUNCH = HERE / "frameworks" / "launch.py"


class ForkServer:
    """launch.py --serve, with these modules (with commas) imported."""

    def __init__(self, folder, modules, environment, python=sys.executable):
        self.socket = folder / "socket"
        self.output = open(folder / "server", "w+")
        self.process = subprocess.Popen(
            [python, LAUNCH, "--serve", self.socket, modules], env=environment,
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output)
        while not self.socket.exists():
            if self.process.poll() is not None:
                self.output.seek(0)
                raise RuntimeError(self.output.read())
            time.sleep(0.1)

    def launcher(self, ranks):
        """What stands before a script, in the place of torchrun."""
        return [sys.executable, str(LAUNCH), str(self.socket), str(ranks)]

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.output.close()
