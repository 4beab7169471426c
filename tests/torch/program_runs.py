# SPDX-License-Identifier: Apache-2.0
"""Runs of small programs, each a function of a file, whose ranks a server forks or a launcher starts.

Shared by the tests of frameworks/, reported/ and unseen/. All three folders use frameworks/common.py.
"""

import os
import re
import sys

from fork_server import ForkServer
from hang_cases import BACKEND, BUILD, HERE, Hang, Run

# Accelerate, Transformers and others are in an environment of their own, over the one of PyTorch.
PYTHON = HERE.parent.parent / "build" / "frameworks-venv" / "bin" / "python"
HAS_FRAMEWORKS = PYTHON.exists() and BACKEND != "gloo"  # which may be another PyTorch
# Where programs find Rollcall's package and common.py.
PYTHON_PATH = f"{HERE.parent.parent / 'python'}:{HERE / 'frameworks'}"


def file_of(folder, program):
    """The file of FILE.FUNCTION."""
    return folder / (program.split(".")[0] + ".py")


def culprit_lines(folder, program):
    """The lines where a culprit of the program stands, as FILE:LINE."""
    name = program.split(".")[1]
    return [f"{file.name}:{number}" for file in sorted(folder.glob("*.py"))
            for number, line in enumerate(file.read_text().splitlines(), start=1)
            if re.search(rf"# hangs: (\w+, )*{name}\b", line)]


def wanted_modules(files):
    """What the programs import, for the server to import once."""
    found = {"torch._dynamo"}  # an optimizer imports it at its first step
    for file in files:
        found.update(re.findall(r"^(?:import|from) ([\w.]+)", file.read_text(), re.MULTILINE))
    return ",".join(sorted(name for name in found if name != "common"
                           and name.split(".")[0] not in sys.stdlib_module_names))


class ProgramServer(ForkServer):
    """The process from which all ranks of the programs of these files are forked."""

    def __init__(self, scratch, files):
        environment = dict(os.environ, LD_PRELOAD=str(BUILD / "lib" / "librollcall.so"),
                           DS_ACCELERATOR="cpu", ACCELERATE_USE_CPU="true", PYTHONPATH=PYTHON_PATH)
        super().__init__(scratch, wanted_modules(files), environment,
                         PYTHON if HAS_FRAMEWORKS else sys.executable)


class ProgramRun(Run):
    """A program under `rollcall run`. launcher: what stands before the script, in the place of torchrun."""

    def __init__(self, launcher, file, program, work, ranks=4, fixed=False, **how):
        job = Hang(program, str(file.relative_to(HERE)), "", None, "", "", "")
        super().__init__(job, work, ranks=ranks, **how)
        (self.work / "program").write_text(program)
        script = [str(file), program.split(".")[1], "--work", str(self.work)]
        at = self.command.index("--") + 1
        self.command[at:] = [*launcher, *script, *(["--fixed"] if fixed else [])]
