# SPDX-License-Identifier: Apache-2.0
"""rollcall.link_incidents(): the incident of a real hang is in the trackers that the job uses."""

import json
import os
import subprocess
import threading

import pytest
from framework_cases import FOLDER, PYTHON
from hang_cases import BUILD, HERE

pytestmark = pytest.mark.long

SOURCE = HERE.parent.parent / "python"
# Reads what the job has written, with the trackers' own readers.
READS = """
import json, pathlib, struct, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from wandb.proto import wandb_internal_pb2

def records(data):
    # LevelDB's log, in blocks of 32 KiB, behind a header of 7 bytes.
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield whole
            whole = b""

work = pathlib.Path(sys.argv[1])
found = {"summary": {}, "alerts": []}
for file in work.rglob("*.wandb"):
    for data in records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        for item in record.summary.update:
            found["summary"][item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
        if record.HasField("alert"):
            found["alerts"].append(record.alert.title)
found["tags"] = {file.name: file.read_text() for file in work.glob("mlruns/*/*/tags/rollcall.*")}
events = EventAccumulator(str(work / "tensorboard"))
events.Reload()
found["texts"] = [event.tensor_proto.string_val[0].decode()
                  for tag in events.Tags()["tensors"] if tag.startswith("rollcall")
                  for event in events.Tensors(tag)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module", autouse=True)
def trackers():
    if not PYTHON.exists():
        pytest.skip("no frameworks; to have them:  deploy/setup_parts.sh frameworks")


def run(work, *flags):
    """The job under `rollcall run --on-hang=abort`; what it left in the trackers."""
    done = subprocess.run(
        [BUILD / "bin" / "rollcall", "run", "--hang-after=3s", "--on-hang=abort", "--http=none",
         f"--report-dir={work}/reports", "--", PYTHON, "-m", "torch.distributed.run",
         "--standalone", "--nproc-per-node", "2", FOLDER / "with_trackers.py", work, *flags],
        env=dict(os.environ, PYTHONPATH=str(SOURCE)), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False)
    read = subprocess.run([PYTHON, "-c", READS, work], capture_output=True, text=True, check=False)
    assert read.returncode == 0, done.stderr + read.stderr
    return done, json.loads(read.stdout)


def test_an_incident_is_in_all_trackers_before_the_job_is_ended(tmp_path):
    done, found = run(tmp_path)
    assert done.returncode == 75, done.stderr
    file, = (tmp_path / "reports").glob("*/incident.json")
    incident = json.loads(file.read_text())
    link = f"https://rollcall.example:7656/#/incident/{incident['id']}"
    said = incident["verdicts"][0]["summary"].rpartition(";")[0]
    assert found["summary"]["rollcall/cause"] == "missing_rank", found
    assert found["summary"]["rollcall/verdict"].startswith(said)
    assert found["summary"]["rollcall/report"] == link
    assert found["alerts"] == ["Rollcall: missing_rank"]
    assert found["tags"]["rollcall.cause"] == "missing_rank"
    assert found["tags"]["rollcall.verdict"].startswith(said)
    assert found["tags"]["rollcall.report"] == link
    text, = found["texts"]
    assert said in text and link in text


def test_a_job_that_ends_well_has_nothing_of_it(tmp_path):
    done, found = run(tmp_path, "--fixed")
    assert done.returncode == 0, done.stderr
    assert found["alerts"] == [] and found["tags"] == {} and found["texts"] == []
    assert not any(name.startswith("rollcall") for name in found["summary"])


class Job:
    """The thread of the package in this process, and the lines that `rollcall run` would write."""

    def __init__(self, folder, monkeypatch):
        monkeypatch.syspath_prepend(str(SOURCE))
        monkeypatch.setenv("ROLLCALL_DIR", str(folder))
        from rollcall import links
        monkeypatch.setattr(links, "EVERY_SECONDS", 0.01)
        monkeypatch.setattr(links, "_linker", None)
        self.links, self.folder, self.seen = links, folder, threading.Event()

    def write(self, text):
        with open(self.folder / "incidents.jsonl", "a", encoding="utf-8") as file:
            file.write(text)


LINE = json.dumps({"id": "a-1", "cause": "missing_rank", "summary": "s", "report_path": "/r"}) + "\n"


class Writer:
    def __init__(self, job, fails=False):
        self.job, self.fails, self.texts = job, fails, []

    def add_text(self, tag, text):
        if self.fails:
            raise OSError("no space left on device")
        self.texts.append((tag, text))

    def flush(self):
        self.job.seen.set()


def test_without_rollcall_run_nothing_is_started(monkeypatch):
    monkeypatch.syspath_prepend(str(SOURCE))
    monkeypatch.delenv("ROLLCALL_DIR", raising=False)
    import rollcall
    assert rollcall.link_incidents() is False
    assert not any(thread.name == "rollcall-links" for thread in threading.enumerate())


def test_a_broken_line_and_a_tracker_that_fails_keep_nothing_from_the_others(tmp_path, monkeypatch):
    job = Job(tmp_path, monkeypatch)
    writer = Writer(job)
    assert job.links.link_incidents(writers=[Writer(job, fails=True), writer])
    assert (tmp_path / f"linker-{os.getpid()}").exists()
    job.write("{nonsense\n" + LINE)
    assert job.seen.wait(10)
    assert writer.texts == [("rollcall", "s  \n/r")]


def test_half_a_line_is_read_when_it_is_whole(tmp_path, monkeypatch):
    job = Job(tmp_path, monkeypatch)
    writer = Writer(job)
    job.links.link_incidents(writers=[writer])
    job.write(LINE[:20])
    assert not job.seen.wait(0.2)
    job.write(LINE[20:])
    assert job.seen.wait(10)
    assert len(writer.texts) == 1
