# SPDX-License-Identifier: Apache-2.0
"""What the pages quote is what the programs say: outputs of commands, and messages."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import ROOT
from processes import free_port

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
ROLLCALL = BUILD / "bin" / "rollcall"
FIVE_MINUTES = (ROOT / "docs" / "first_five_minutes.md").read_text()
# What differs from run to run.
VARIES = [(r"\d+ rank-seconds", "N rank-seconds"), (r"/\S*(?=rollcall-reports/)", ""),
          (r"\d{8}T\d{6}Z-train-\d+-", "TIME-"),
          (r"\((?:[\w.-]+), pid \d+\)", "(HOST, pid N)"), (r"waited \d+(\.\d+)? s", "waited N s"),
          # The page says so: on a busy host the culprit may only have no processor.
          (r"certainty: (certain|likely);", "certainty: CERTAINTY;"),
          (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME"), (r"  \d+s  ", "  Ns  ")]


def settled(text):
    for pattern, replacement in VARIES:
        text = re.sub(pattern, replacement, text)
    return [re.sub(r" +", " ", line).strip() for line in text.strip().splitlines()]


def quoted(name):
    """Command -> lines, of the block that this name marks."""
    block = re.search(rf"<!-- checked: {name} -->\n```console\n(.*?)```", FIVE_MINUTES, re.S)[1]
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return {command: settled(lines) for command, lines in zip(parts[::2], parts[1::2])}


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ROLLCALL")}
    return {**clean, "PATH": f"{BUILD / 'bin'}:{clean['PATH']}", **more}


needs_demo = pytest.mark.skipif(not (BUILD / "sim").exists(), reason="this build has no simulated NCCL")


@needs_demo
def test_the_demo_says_what_the_page_shows(tmp_path):
    [(command, lines)] = quoted("demo").items()
    said = subprocess.run(command.split(), cwd=tmp_path, env=environment(), capture_output=True,
                          text=True, timeout=120, check=False)
    # Advice on the load of this machine, which another one has not.
    assert [line for line in lines if line not in settled(said.stdout + said.stderr)] == []
    assert (list((tmp_path / "rollcall-reports").glob("*/report.html")))


@pytest.fixture
def hung_job(tmp_path):
    """The environment in which a daemon of this host has the demo's job, which hangs."""
    address = f"127.0.0.1:{free_port()}"
    variables = environment(ROLLCALL_DAEMON=address, ROLLCALL_JOB="demo")
    started = []

    def start(*command):
        started.append(subprocess.Popen(command, cwd=tmp_path, env=variables,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    start(BUILD / "bin" / "rollcalld", f"--listen={address}", "--http=none", "--hang-after=3s")
    start(ROLLCALL, "run", "--sim", "--http=none", "--", shutil.which("python3", path="/usr/bin"),
          ROOT / "cli" / "demo" / "train.py")
    yield variables
    for process in reversed(started):
        process.send_signal(signal.SIGTERM)
    for process in reversed(started):
        process.wait(timeout=120)


@needs_demo
def test_status_and_incidents_say_what_the_page_shows(hung_job, tmp_path):
    for command, lines in quoted("status").items():
        deadline = time.monotonic() + 60
        said = ""
        while settled(said) != lines and time.monotonic() < deadline:
            time.sleep(0.3)
            said = subprocess.run(command.split(), cwd=tmp_path, env=hung_job, capture_output=True,
                                  text=True, timeout=120, check=False).stdout
        assert settled(said) == lines


def sources():
    """All strings of the programs, with those that continue on the next line joined."""
    text = ""
    for folder in sorted(ROOT.iterdir()):
        if folder.name not in ("build", "tests"):
            text += "".join(path.read_text() for path in sorted(folder.rglob("*.[ch]*"))
                            if path.suffix in (".cc", ".h", ".c"))
    return re.sub(r'"\s*\n?\s*"', "", text).replace('\\"', '"')


def test_the_messages_in_the_troubleshooting_page_are_those_of_the_programs():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    messages = [line for block in re.findall(r"```text\n(.*?)```", page, re.S)
                for line in block.splitlines()]
    assert len(messages) > 12
    spoken = sources()
    # "0 agents" is a number of the program's, and "..." stands for what differs.
    parts = [part.strip("; ") for line in messages
             for part in re.split(r"\.\.\.|\b\d agents", line) if len(part.strip()) > 6]
    missing = [part for part in parts if part not in spoken]
    assert missing == []


def symptoms():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    return re.findall(r"^### ([^\n]*)\n(.*?)(?=^##|\Z)", page, re.S | re.MULTILINE)


def test_every_symptom_says_what_it_means_or_what_to_do():
    assert len(symptoms()) >= 15
    for title, text in symptoms():
        assert re.search(r"\*\*(It means|Do)|\| it means", text), title


def test_every_command_of_the_papers_is_one_of_the_program():
    known = set(re.findall(r"^  (\w+)  +\w", subprocess.run(
        [ROLLCALL, "--help"], env=environment(), capture_output=True, text=True, timeout=120,
        check=True).stdout.split("Commands:")[1], re.MULTILINE))
    assert len(known) > 10
    for name in ("first_five_minutes", "concepts", "troubleshooting", "faq", "compare"):
        text = (ROOT / "docs" / f"{name}.md").read_text()
        used = set(re.findall(r"(?:`|^|\$ )rollcall (\w+)", text, re.MULTILINE))
        assert used <= known, name
