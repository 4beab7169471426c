# SPDX-License-Identifier: Apache-2.0
"""The program on gloo in docs/first_five_minutes.md hangs, and Rollcall says what the page shows."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from hang_cases import BUILD, HERE
from test_tutorial import MASKS

pytestmark = pytest.mark.long

PAGE = (HERE.parent.parent / "docs" / "first_five_minutes.md").read_text()
# A busy host takes certainty away.
VARIES = [*MASKS, (re.compile(r"certainty: \w+"), "certainty: SOME")]


def block(name, language):
    return re.search(rf"<!-- checked: {re.escape(name)} -->\n```{language}\n(.*?)```", PAGE, re.S)[1]


def settled(text):
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return [line for line in text.splitlines() if line.startswith("rollcall:")]


def test_the_page_shows_what_rollcall_says(tmp_path):
    (tmp_path / "train.py").write_text(block("train.py", "python"))
    command, _, lines = block("gloo", "console").removeprefix("$ ").partition("\n")
    path = os.pathsep.join([str(BUILD / "bin"), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(["bash", "-c", f"exec {command}"], cwd=tmp_path, env={**os.environ, "PATH": path},
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert run.returncode == 75, run.stderr
    # Rollcall may say more: that this machine is busy.
    assert [line for line in settled(lines) if line not in settled(run.stderr)] == [], run.stderr
