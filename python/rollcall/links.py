# SPDX-License-Identifier: Apache-2.0
"""Puts the incidents of a job into the experiment trackers that this process uses.

`rollcall run` writes each confirmed incident as a line of JSON into the file incidents.jsonl of the folder that
ROLLCALL_DIR names. A thread of this process reads the file once a second. It never raises, and nothing waits for
it. A main thread that hangs in a collective does not stop it, because PyTorch hangs without Python's lock.
"""

import contextlib
import gc
import json
import os
import pathlib
import sys
import threading
import time

EVERY_SECONDS = 1.0
ABORTED = 75  # exit code of rollcall run --on-hang=abort
TRACKER_SECONDS = 10.0  # for one tracker; afterwards the next one gets its turn
_lock = threading.Lock()
_linker = None


def link_incidents(page=None, writers=()):
    """See rollcall.link_incidents."""
    global _linker
    folder = os.environ.get("ROLLCALL_DIR")
    if not folder or not os.path.isdir(folder):
        return False
    with _lock:
        if _linker is None or _linker.pid != os.getpid():
            _linker = Linker(pathlib.Path(folder))
            _linker.start()
        _linker.page = page or _linker.page
        _linker.writers.extend(writers)
        _linker.remember_run()
    return True


class Linker:
    """The thread, and what it needs to find the trackers."""

    def __init__(self, folder):
        self.pid = os.getpid()
        self.file = folder / "incidents.jsonl"
        # Tells `rollcall run --on-hang=abort` to wait a moment for this thread.
        self.marker = folder / f"linker-{self.pid}"
        self.page = None
        self.writers = []
        self.mlflow_run = None
        self.read = 0  # bytes

    def start(self):
        with contextlib.suppress(OSError):
            self.marker.touch()
        threading.Thread(target=self._go, name="rollcall-links", daemon=True).start()

    def remember_run(self):
        """The active run of this thread: MLflow keeps one for each."""
        with contextlib.suppress(Exception):
            self.mlflow_run = sys.modules["mlflow"].active_run().info.run_id

    def _go(self):
        while True:
            time.sleep(EVERY_SECONDS)
            with contextlib.suppress(Exception):
                if self.file.stat().st_size > self.read:
                    self._link_new()

    def _link_new(self):
        with open(self.file, "rb") as file:
            file.seek(self.read)
            new = file.read()
        whole = new[:new.rfind(b"\n") + 1]
        self.read += len(whole)
        for line in whole.splitlines():
            with contextlib.suppress(ValueError):
                self._take(json.loads(line))

    def _take(self, line):
        if not line.get("ends_job"):
            return self._link(line)
        in_time(finish_wandb)
        with contextlib.suppress(OSError):
            self.marker.unlink()

    def _link(self, incident):
        link = incident.get("report_path", "")
        if self.page:
            link = f"{self.page.rstrip('/')}/#/incident/{incident['id']}"
        for tracker in (link_wandb, link_mlflow, link_tensorboard):
            in_time(tracker, self, incident, link)


def in_time(function, *arguments):
    thread = threading.Thread(target=quietly, args=(function, *arguments), daemon=True)
    thread.start()
    thread.join(TRACKER_SECONDS)


def quietly(function, *arguments):
    with contextlib.suppress(Exception):
        function(*arguments)


def link_wandb(linker, incident, link):
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is None:
        return
    run.summary.update({"rollcall/verdict": incident["summary"], "rollcall/cause": incident["cause"],
                        "rollcall/report": link})
    run.alert(title=f"Rollcall: {incident['cause']}", text=f"{incident['summary']}\n{link}")


def finish_wandb():
    """wandb's service keeps what it has not sent or written in memory, and ends with the job."""
    if (run := getattr(sys.modules.get("wandb"), "run", None)) is not None:
        run.finish(exit_code=ABORTED)


def link_mlflow(linker, incident, link):
    mlflow = sys.modules.get("mlflow")
    if mlflow is None:
        return
    run = linker.mlflow_run or run_of_any_thread(mlflow)
    if run is None:
        return
    client = mlflow.MlflowClient()
    for name, value in (("verdict", incident["summary"]), ("cause", incident["cause"]),
                        ("report", link)):
        client.set_tag(run, f"rollcall.{name}", value)


def run_of_any_thread(mlflow):
    """The id of the run that is active in some thread; None: there is none."""
    with contextlib.suppress(Exception):
        return mlflow.tracking.fluent._get_latest_active_run().info.run_id
    return None


def link_tensorboard(linker, incident, link):
    for writer in linker.writers or living_writers():
        with contextlib.suppress(Exception):
            writer.add_text("rollcall", f"{incident['summary']}  \n{link}")
            writer.flush()


def living_writers():
    """The SummaryWriters of this process. Asks types alone: objects may answer with side effects."""
    kinds = tuple(kind for name in ("torch.utils.tensorboard.writer", "tensorboardX.writer")
                  if (kind := getattr(sys.modules.get(name), "SummaryWriter", None)) is not None)
    if not kinds:
        return []
    return [thing for thing in gc.get_objects() if issubclass(type(thing), kinds)]
