# SPDX-License-Identifier: Apache-2.0
"""pytest --rollcall: a test whose ranks hang fails with Rollcall's verdict, and does not hang.

Watched are the processes that a test starts: by torchrun, by torch.multiprocessing's spawn, by subprocess. Beside
the tests runs `rollcall run --on-hang=abort` with a command that only waits. The tests' processes get the
environment that this command has, so the library in them reports to this `rollcall run`, and its policy decides
when a hang is one. It then exits with 75; this plugin ends the processes of the test and fails the test.

A process that forks without exec has what pytest's own process has, which is not watched.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from rollcall.program import find_program

HANG = 75  # exit code of rollcall run --on-hang=abort
READY_SECONDS = 30
END_SECONDS = 15
LOOK_EVERY_SECONDS = 0.1
GRACE_SECONDS = 3  # from SIGTERM to SIGKILL
WAKE_EVERY_SECONDS = 5  # a test that goes on waiting although its processes are gone
WAKE = signal.SIGRTMAX - 3  # a signal that programs leave alone
# Prints its environment and then waits until pytest closes its input, or has ended.
WAITS = ["sh", "-c", 'env -0 > "$0.new" && mv "$0.new" "$0" && exec cat > /dev/null']
CHANGED = ("LD_PRELOAD", "NCCL_PROFILER_PLUGIN")  # and all that begin with ROLLCALL_


class Hang(pytest.fail.Exception):
    """What a test gets that still waits after its processes have been ended."""

    __module__ = "rollcall"


def pytest_addoption(parser):
    group = parser.getgroup("rollcall", "Rollcall: why distributed tests hang")
    group.addoption("--rollcall", action="store_true",
                    help="fail a test whose ranks hang, with Rollcall's verdict")
    group.addoption("--rollcall-hang-after", metavar="TIME", default="60s",
                    help="a wait of this length is a hang (default: 60s)")
    group.addoption("--rollcall-report-dir", metavar="DIR", default="rollcall-reports",
                    help="folder for the reports (default: rollcall-reports)")
    group.addoption("--rollcall-missing", choices=["fail", "warn"], default="fail",
                    help="where Rollcall's program or library is missing: fail, or warn and run "
                         "the tests without it (default: fail)")


def pytest_configure(config):
    if not config.getoption("--rollcall"):
        return
    try:
        program = find_program()
        check_flags(program, config)
    except FileNotFoundError as error:
        if config.getoption("--rollcall-missing") == "fail":
            raise pytest.UsageError(f"--rollcall: {error}\n  to run the tests without Rollcall in "
                                    "this case:  --rollcall-missing=warn") from error
        config.issue_config_time_warning(
            pytest.PytestConfigWarning(f"--rollcall has no effect: {error}"), stacklevel=2)
        return
    config.pluginmanager.register(Watch(config, program), "rollcall-watch")


def check_flags(program, config):
    """Raises UsageError for a time that `rollcall run` does not take."""
    after = config.getoption("--rollcall-hang-after")
    tried = subprocess.run([program, "run", f"--hang-after={after}", "--help"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        raise pytest.UsageError(f"--rollcall-hang-after={after}: {tried.stderr.strip()}")


class Watcher:
    """One `rollcall run`: for one test that uses NCCL, or for several that do not."""

    count = 0

    def __init__(self, program, config):
        Watcher.count += 1
        self.folder = tempfile.TemporaryDirectory(prefix="rollcall-pytest-")
        self.said = pathlib.Path(self.folder.name) / "said"
        found = pathlib.Path(self.folder.name) / "environment"
        own = {name: value for name, value in os.environ.items() if name != "ROLLCALL_DAEMON"}
        own["ROLLCALL_JOB"] = f"pytest-{os.getpid()}-{Watcher.count}"
        with open(self.said, "w", encoding="utf-8") as said:
            self.process = subprocess.Popen(
                [program, "run", f"--hang-after={config.getoption('--rollcall-hang-after')}",
                 "--on-hang=abort", "--http=none",
                 f"--report-dir={os.path.abspath(config.getoption('--rollcall-report-dir'))}",
                 "--", *WAITS, str(found)],
                env=own, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said,
                start_new_session=True)  # Ctrl-C is for pytest
        self.environment = self._await_environment(found)
        self.directory = self.environment.get("ROLLCALL_DIR")
        self.is_used = False

    def _await_environment(self, found):
        """What the tests' processes need; {}: Rollcall did not start."""
        until = time.monotonic() + READY_SECONDS
        while not found.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                return {}
            time.sleep(0.005)
        entries = found.read_bytes().decode("utf-8", "surrogateescape").split("\0")
        pairs = (entry.split("=", 1) for entry in entries if "=" in entry)
        return {name: value for name, value in pairs
                if name in CHANGED or name.startswith("ROLLCALL_")}

    @property
    def is_running(self):
        return self.process.poll() is None

    def look(self):
        """Sees whether a process has recorded calls: the next test then gets its own watcher."""
        if not self.is_used and self.directory:
            self.is_used = next(pathlib.Path(self.directory).glob("*.seg"), None) is not None

    def words(self):
        """What `rollcall run` said, without its prefix."""
        kept = []
        for line in self.said.read_text(encoding="utf-8", errors="replace").splitlines():
            if "ending the job (--on-hang=abort)" in line or "rollcall: once more" in line:
                break
            kept.append(line[len("rollcall: "):] if line.startswith("rollcall: ") else line)
        return "\n".join(kept)

    def stop(self):
        """Ends `rollcall run`, which removes its folder. Does not wait for the tests' processes."""
        self.process.stdin.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def processes_of(directory, own):
    """The pids of this user's processes that have ROLLCALL_DIR=directory. own: not these."""
    wanted = f"ROLLCALL_DIR={directory}".encode("utf-8", "surrogateescape")
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in own:
            continue
        try:
            has_it = wanted in (entry / "environ").read_bytes().split(b"\0")
            # multiprocessing's tracker serves pytest's process, and is not a rank.
            if has_it and b"multiprocessing.resource_tracker" not in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or is another user's
    return found


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def end_processes(directory, own):
    """SIGTERM, and SIGKILL for those that stay, until there are none: launchers start ranks anew."""
    told = set()
    started = time.monotonic()
    while (pids := processes_of(directory, own)) and time.monotonic() < started + END_SECONDS:
        if time.monotonic() > started + GRACE_SECONDS:
            send(pids, signal.SIGKILL)
        else:
            new = [pid for pid in pids if pid not in told]
            told.update(new)
            send(new, signal.SIGTERM)
            send(new, signal.SIGCONT)
        time.sleep(0.1)


class Watch:
    """Gives each test a watcher, and fails the tests whose watcher has found a hang."""

    def __init__(self, config, program):
        self.config = config
        self.program = program
        self.watcher = None
        self.verdict = None  # of the running test
        self.is_told = False  # a report has the verdict
        self.is_in_phase = False  # the test's own code or its fixtures run
        self.over = None  # set at the end of the test
        self.guard = None
        self.changed = {}  # the environment's former values
        self.handled = None  # the former handler of WAKE

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        self._begin(item)
        yield from self._phase()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self):
        yield from self._phase()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self):
        try:
            yield from self._phase()
        finally:
            self._end()

    def pytest_sessionfinish(self):
        self._end()
        self._stop_watcher()

    def _phase(self):
        self.is_in_phase = True
        try:
            yield
        finally:
            self.is_in_phase = False

    def _begin(self, item):
        self._end()  # of a test without a teardown
        self.verdict, self.is_told = None, False
        if self.watcher is None:
            self.watcher = Watcher(self.program, self.config)
        if not self.watcher.environment.get("LD_PRELOAD"):
            item.warn(pytest.PytestWarning("Rollcall does not watch this test: "
                                           + (self.watcher.words() or "rollcall run did not start")))
        wanted = self.watcher.environment
        self.changed = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        self.handled = self._take_wake_signal()
        self.over = threading.Event()
        self.guard = threading.Thread(target=self._guard, args=(self.watcher, self.over),
                                      daemon=True)
        self.guard.start()

    def _end(self):
        if self.guard is None:
            return
        self.over.set()
        self.guard.join()
        self.guard = None
        self.watcher.look()
        if self.handled is not None:
            signal.signal(WAKE, self.handled)
        for name, value in self.changed.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if self.watcher.is_used or not self.watcher.is_running:
            self._stop_watcher()

    def _stop_watcher(self):
        if self.watcher is None:
            return
        self.watcher.stop()
        self.watcher = None
        # multiprocessing's server of forks has the environment of the test that began it.
        module = sys.modules.get("multiprocessing.forkserver")
        stop = getattr(getattr(module, "_forkserver", None), "_stop", None)
        if stop is not None:
            stop()

    def _take_wake_signal(self):
        """The former handler; None: this is not the main thread, or somebody uses the signal."""
        if (threading.current_thread() is not threading.main_thread()
                or signal.getsignal(WAKE) is not signal.SIG_DFL):
            return None
        return signal.signal(WAKE, self._wake)

    def _wake(self, number, frame):
        if self.is_in_phase and self.verdict is not None:
            raise Hang(self.verdict, pytrace=False)

    def _guard(self, watcher, over):
        """Waits for the end of the test or of its `rollcall run`."""
        while watcher.is_running and not over.wait(LOOK_EVERY_SECONDS):
            watcher.look()
        if watcher.is_running or watcher.process.returncode != HANG:
            return
        self.verdict = watcher.words()
        end_processes(watcher.directory, {os.getpid(), watcher.process.pid})
        while not over.wait(WAKE_EVERY_SECONDS):
            if self.handled is not None:
                signal.pthread_kill(threading.main_thread().ident, WAKE)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if self.verdict is None or self.is_told or hasattr(report, "wasxfail"):
            return
        self.is_told = True
        if report.longrepr is not None:
            report.sections.append(("what the test itself said", str(report.longrepr)))
        report.outcome = "failed"
        report.longrepr = describe(item, self.verdict)


def describe(item, verdict):
    """The verdict as pytest and its plugins show a failure."""
    try:
        raise Hang(verdict)
    except Hang as hang:
        shown = pytest.ExceptionInfo.from_exception(hang).getrepr(style="value")
    path, line, _ = item.location
    shown.reprcrash.path, shown.reprcrash.lineno = str(path), (line or 0) + 1
    shown.reprcrash.message = verdict
    return shown
