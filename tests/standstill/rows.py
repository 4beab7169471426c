# SPDX-License-Identifier: Apache-2.0
"""What a row of cases.py is, and how its program is started."""

import dataclasses
import pathlib
import re
import subprocess
import sys

from expected_verdict import Expected

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Row(Expected):
    """culprits: () where all wait in one place. says: what is waited for, in words, and who has it."""
    ranks: int = 3
    most: str = "likely"
    twin: str = ""  # what the healthy twin does
    package: str = ""  # that it needs beside PyTorch and numpy
    launch: tuple = ()  # options of launch.py for the hang
    starter: str = "launch.py"  # or "mpirun", or "python": the program starts its ranks itself
    at: str = "line"  # "" where the culprits have no place: they have ended or were never started

    @property
    def name(self):
        """What stands in the comment "# hangs: NAME"."""
        file, _, function = self.program.partition(".")
        return file if self.is_c else function

    @property
    def is_c(self):
        return self.program.endswith(".c")

    @property
    def file(self):
        return HERE / (self.program if self.is_c else self.program.split(".")[0] + ".py")

    @property
    def lines(self):
        """The lines where a culprit may stand, or where all wait, as FILE:LINE."""
        if not self.at:
            return []
        files = [self.file] if self.is_c else sorted(HERE.glob("*.py"))
        return [f"{file.name}:{number}" for file in files
                for number, line in enumerate(file.read_text().splitlines(), start=1)
                if re.search(rf"(#|//) hangs: (\w+, )*{self.name}\b", line)]

    def compile_command(self, folder):
        """How gcc makes the program of a C file."""
        return ["gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-pthread", str(self.file),
                "-o", str(pathlib.Path(folder, self.name))]

    def remove_ipc(self, work):
        """Objects of System V outlive a killed job. The id is the first word of the page that the ranks share."""
        kind, page = {"sysv_semaphore": "-s", "message_queue": "-q"}.get(self.name), pathlib.Path(work, "page")
        if kind and page.exists():
            number = int.from_bytes(page.read_bytes()[:4], sys.byteorder)
            subprocess.run(["ipcrm", kind, str(number)], capture_output=True)

    def command(self, work, folder="", fixed=False, seconds=30):
        """The job. folder: where the compiled programs are."""
        program = [str(pathlib.Path(folder, self.name))] if self.is_c else [sys.executable, str(self.file), self.name]
        program += ["--work", str(work), "--for", str(seconds), *(["--fixed"] if fixed else [])]
        if self.starter == "mpirun":
            return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(self.ranks), *program]
        if self.starter == "python":
            return program
        options = () if fixed else self.launch
        return [sys.executable, str(HERE / "launch.py"), "-n", str(self.ranks), *options, "--", *program]
