# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md tells the truth: its commands are run as they stand there, and what they print
is compared. ROLLCALL_WRITE_DOCS=1 writes what they print instead."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest
from hang_cases import BUILD, HERE, by_name

pytestmark = pytest.mark.long

TUTORIAL = HERE.parent.parent / "docs" / "tutorial.md"
BLOCK = re.compile(r"<!-- checked: (?P<name>\S+) -->\n```console\n\$ (?P<command>.*)\n"
                   r"(?P<output>(?:(?!```).*\n)*)```\n")
BLOCKS = {block["name"]: block for block in BLOCK.finditer(TUTORIAL.read_text())}
# What differs from run to run, and from machine to machine.
MASKS = [
    (re.compile(r"\(\S+, pids? [\d, ]+\)"), "(HOST, pid PID)"),
    (re.compile(r"waited [\d.]+ (ms|s)"), "waited TIME"),
    (re.compile(r"\d{8}T\d{6}Z-train-\d+"), "DATE-train-PID"),
    # In a contradiction some may still be on the way to where they will wait.
    (re.compile(r"; ranks? [\d,-]+ at [^;\n]+"), "; RANKS at PLACE"),
    (re.compile(r"report: \S*/rollcall-reports/"), "report: rollcall-reports/"),
]
# The verdict comes once more where the job takes longer than a second to end.
REPEATED = re.compile(r"^rollcall: once more, .*\n(rollcall:   report: .*\n)?", re.MULTILINE)


def masked(text):
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return text


def for_readers(text):
    text = re.sub(r"report: \S*/rollcall-reports/", "report: rollcall-reports/", text)
    return re.sub(r"\(\S+, pid", "(node-1, pid", text)


class Place:
    """What a Hang's `upset` wants to know of a run."""

    def __init__(self, work):
        self.work, self.ranks = work, 4


def run_as_it_stands(command, name, work):
    for script in HERE.glob("*/*.py"):
        (work / script.parent.name).mkdir(exist_ok=True)
        shutil.copy(script, work / script.parent.name)
    path = os.pathsep.join([str(BUILD / "bin"), str(pathlib.Path(sys.executable).parent),
                            os.environ["PATH"]])
    upset = by_name(name).upset or (lambda place: contextlib.nullcontext())
    with upset(Place(work)):
        job = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=work, text=True,
                               env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            output, _ = job.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGTERM)
            output, _ = job.communicate(timeout=120)
    said = "".join(line + "\n" for line in output.splitlines() if line.startswith("rollcall:"))
    return REPEATED.sub("", said)


@pytest.mark.parametrize("name", BLOCKS)
def test_the_tutorial_prints_what_it_says(name, tmp_path):
    block = BLOCKS[name]
    printed = run_as_it_stands(block["command"], name, tmp_path)
    if os.environ.get("ROLLCALL_WRITE_DOCS"):
        text = TUTORIAL.read_text()
        old = text[text.index(f"<!-- checked: {name} -->"):]
        old = BLOCK.match(old)
        new = old[0].replace(old["output"], "") if old["output"] else old[0]
        new = new.removesuffix("```\n") + for_readers(printed) + "```\n"
        TUTORIAL.write_text(text.replace(old[0], new))
    else:
        assert masked(printed) == masked(block["output"])


def test_all_five_are_there():
    assert list(BLOCKS) == ["rank0-only-setup", "init-order", "uneven-inputs", "buffer-broadcast",
                            "rank0-only-checkpoint"]
