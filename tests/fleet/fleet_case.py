# SPDX-License-Identifier: Apache-2.0
"""Runs a daemon under fleet_load, and measures both. For test_fleet.py and measure.py."""
import dataclasses
import datetime
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.request

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
POLL_SECONDS = 1
LONG = os.environ.get("ROLLCALL_FLEET_LONG") == "1"
# The daemon is killed above it: it must not take the memory of others on the machine.
MOST_RSS_MIB = int(os.environ.get("ROLLCALL_FLEET_MOST_MIB", 10_000))


def unix_seconds(rfc3339):
    """Of a time as the API writes it, with nanoseconds or without."""
    whole, _, fraction = rfc3339.rstrip("Z").partition(".")
    second = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc)
    return second.timestamp() + float(f"0.{fraction or 0}")


class Daemon:
    """A rollcalld on ports of its own, which keeps them when it is started again."""

    def __init__(self, build, folder, hang_after, flags=(), address="127.0.0.1"):
        self.build, self.folder, self.hang_after = build, pathlib.Path(folder), hang_after
        self.flags = flags
        self.listen, self.page = f"{address}:0", "127.0.0.1:0"
        self.log = (self.folder / "daemon.log").open("ab")
        self.past_cpu_seconds = 0.0  # of processes that have ended
        self.stop_seconds = None  # that it took to end by SIGTERM
        self.start()

    def start(self):
        said = (self.folder / "daemon.log").stat().st_size
        self.process = subprocess.Popen(
            [self.build / "bin" / "rollcalld", f"--listen={self.listen}", f"--http={self.page}",
             f"--hang-after={self.hang_after}s", f"--report-dir={self.folder / 'reports'}", *self.flags],
            stderr=self.log)
        until = time.monotonic() + 90
        while time.monotonic() < until:
            text = (self.folder / "daemon.log").read_bytes()[said:].decode()
            found = re.search(r"agents on (\S+), pages on (https?)://(\S+)/", text)
            if found:
                self.listen, self.scheme, self.page = found.groups()
                return
            time.sleep(0.02)
        raise RuntimeError(f"the daemon did not start: {text}")

    def ask(self, path):
        """The answer of the API, from this host."""
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(f"{self.scheme}://{self.page}/api/v1/{path}", timeout=60,
                                    context=trusting) as answer:
            return json.load(answer)

    def kill_and_restart(self):
        self.past_cpu_seconds = self.cpu_seconds()
        self.process.kill()
        self.process.wait()
        self.start()

    def stop(self):
        """Ends it as an operator does."""
        self.past_cpu_seconds = self.cpu_seconds()
        began = time.monotonic()
        self.process.terminate()
        self.process.wait(timeout=120)
        self.stop_seconds = time.monotonic() - began

    def await_silence(self, job, within):
        """Waits until it counts all hosts of the job as silent."""
        until = time.monotonic() + within
        while time.monotonic() < until:
            processes = self.ask(f"processes?job={job}&limit=1000")["processes"]
            if processes and all(process["liveness"] == "silent" for process in processes):
                return
            time.sleep(0.1)
        raise RuntimeError(f"the hosts of {job} do not count as silent after {within} s")

    def hold(self, seconds):
        """Stops it from running for a while, as a suspended virtual machine is."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.process.kill()  # its files are no longer needed
        self.process.wait()

    def cpu_seconds(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return self.past_cpu_seconds + (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def memory_mib(self, what="Rss"):
        rollup = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(re.search(rf"^{what}:\s+(\d+)", rollup, re.MULTILINE).group(1)) / 1024

    def files(self):
        """What it keeps, without logs. SQLite's log of writes has up to 4 MiB."""
        others = (".log", "-wal", "-shm")
        return [path for path in self.folder.rglob("*")
                if path.is_file() and not path.name.endswith(others)]

    def disk_mib(self):
        return sum(path.stat().st_size for path in self.files()) / 2**20


@dataclasses.dataclass
class Sample:
    seconds: float  # since the load began
    cpu_seconds: float
    rss_mib: float


class Watch(threading.Thread):
    """Asks for the incidents and samples the daemon once a second, as long as the load runs."""

    def __init__(self, daemon, began):
        super().__init__(daemon=True)
        self.daemon_process, self.began = daemon, began
        self.samples, self.incidents, self.unanswered = [], {}, 0
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(POLL_SECONDS):
            self.look()

    def look(self):
        daemon = self.daemon_process
        try:
            self.samples.append(Sample(time.time() - self.began, daemon.cpu_seconds(),
                                       daemon.memory_mib()))
            if self.samples[-1].rss_mib > MOST_RSS_MIB:
                daemon.end()
            for incident in daemon.ask("incidents?limit=1000")["incidents"]:
                self.incidents[incident["id"]] = incident
        except (OSError, ValueError, AttributeError):
            self.unanswered += 1  # it is being restarted, or held

    def stop(self):
        self.over.set()
        self.join()


@dataclasses.dataclass
class Outcome:
    name: str
    load: dict        # what fleet_load printed
    incidents: list   # all that the daemon reported
    samples: list     # of the daemon
    seconds: float    # of the load
    steady: tuple     # seconds between which nothing but the usual load happens
    pss_mib: float
    disk_mib: float
    files: list       # names
    unanswered: int   # polls of the API
    stop_seconds: float | None  # that the daemon took to end by SIGTERM, if it had to
    idle_rss_mib: float  # before the load
    machine_load: float  # load average of the machine at the end

    @property
    def ranks(self):
        return self.load["ranks"]

    def cores(self, since, until):
        """Of the daemon, on average between two times."""
        inside = [s for s in self.samples if since <= s.seconds <= until]
        if len(inside) < 2:
            return float("nan")
        spent = inside[-1].cpu_seconds - inside[0].cpu_seconds
        return spent / (inside[-1].seconds - inside[0].seconds)

    @property
    def steady_cores(self):
        return self.cores(*self.steady)

    @property
    def rss_mib(self):
        return max(sample.rss_mib for sample in self.samples)

    @property
    def load_cores(self):
        return self.load["cpu_seconds"] / self.seconds

    @property
    def confirmed(self):
        return [i for i in self.incidents if i.get("confirmed_at")]

    def false_incidents(self):
        """Confirmed ones of jobs that do not hang, or that blame another rank."""
        culprits = {hang["job"]: hang["culprit"] for hang in self.load["hangs"]}
        return [(i["job"], i["verdicts"][0]["summary"]) for i in self.confirmed
                if [c["rank"] for c in i["verdicts"][0]["culprits"]] != [culprits.get(i["job"])]]

    def confirm_delays(self):
        """Seconds from the first waiting rank to the confirmed incident, by job that hangs."""
        confirmed = {}
        for incident in self.confirmed:
            at = unix_seconds(incident["confirmed_at"])
            confirmed[incident["job"]] = min(at, confirmed.get(incident["job"], at))
        return {hang["job"]: confirmed.get(hang["job"], float("inf")) - hang["since"]
                for hang in self.load["hangs"]}

    def row(self):
        delays = self.confirm_delays().values()
        return [self.name, self.load["hosts"], self.ranks, f"{self.steady_cores:.2f}",
                f"{self.rss_mib:.0f}", f"{self.pss_mib:.0f}", f"{self.load_cores:.2f}",
                self.load["streams_closed_by_daemon"], self.load["ticks_delayed"],
                f"{self.load['all_connected_seconds'] or float('nan'):.1f}",
                f"{self.load['outage_seconds_max']:.1f}",
                f"{max(delays):.2f}" if delays else "-", f"{self.machine_load:.1f}"]


def steady_of(case, load):
    """The seconds between which nothing but the usual load happens."""
    since, until = case.steady or (case.start_within + 5, case.seconds)
    if case.settle:
        since = max(since, (load["all_connected_seconds"] or until) + case.settle)
    return since, until


COLUMNS = ["case", "hosts", "ranks", "daemon cores", "RSS MiB", "PSS MiB", "load cores",
           "streams closed", "ticks delayed", "connected s", "outage s", "confirm s",
           "machine load"]


def table(outcomes):
    rows = [COLUMNS] + [[str(cell) for cell in outcome.row()] for outcome in outcomes]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths))
                     for row in rows)


@dataclasses.dataclass
class Case:
    """One load on one daemon. Times are seconds from the start of the load."""

    name: str
    seconds: float
    jobs: int = 1
    ranks: int = 64  # of each job
    start_within: float = 1
    hang_after: float = 60
    flags: tuple = ()  # further ones of fleet_load
    daemon_flags: tuple = ()
    address: str = "127.0.0.1"  # that the daemon listens on
    steady: tuple = ()  # default: from 5 s after all have begun to connect until the end
    settle: float = 0  # the steady time begins so long after all have connected, at the earliest
    actions: tuple = ()  # (time, what to do with the daemon and the process of the load)


def own_address():
    """An address of this machine that is not loopback, where a daemon trusts nobody by the user at
    the other end. Loopback, if the machine has no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # sends nothing: asks for the way to another network
        except OSError:
            return "127.0.0.1"
        return probe.getsockname()[0]


def make_certificates(build, folder, address):
    """One certificate for a daemon at this address, one for all hosts. Returns the flags of the
    daemon and of fleet_load."""
    for arguments in (["init"], ["issue", "--role=daemon", f"--host={address}"],
                      ["issue", "--role=agent", "--name=fleet", "--host=*.fleet"]):
        subprocess.run([pathlib.Path(build) / "bin" / "rollcall", "pki", arguments[0], folder,
                        *arguments[1:]], check=True, stdout=subprocess.DEVNULL)
    return ((f"--tls-cert={folder}/daemon.crt", f"--tls-key={folder}/daemon.key",
             f"--tls-client-ca={folder}/ca.crt", f"--tls-crl={folder}/ca.crl"),
            (f"--tls-ca={folder}/ca.crt", f"--tls-cert={folder}/fleet.crt",
             f"--tls-key={folder}/fleet.key", "--host-domain=.fleet"))


def run_case(case, build, folder):
    """Runs the case in an empty folder and returns its Outcome."""
    build = pathlib.Path(build).resolve()
    daemon = Daemon(build, folder, case.hang_after, case.daemon_flags, case.address)
    idle_rss_mib = daemon.memory_mib()
    began = time.time()
    load = subprocess.Popen(
        [build / "tests" / "fleet_load", f"--daemon={daemon.listen}", f"--jobs={case.jobs}",
         f"--ranks={case.ranks}", f"--seconds={case.seconds}",
         f"--start-within={case.start_within}", *case.flags],
        stdout=subprocess.PIPE, stderr=(pathlib.Path(folder) / "load.log").open("w"), text=True)
    watch = Watch(daemon, began)
    watch.start()
    try:
        for at, act in case.actions:
            time.sleep(max(0, began + at - time.time()))
            act(daemon, load)
        line = load.stdout.readline()  # the streams are closed only after this
        watch.stop()
        if daemon.process.poll() is not None:
            raise RuntimeError(f"{case.name}: the daemon died, or was killed for more than "
                               f"{MOST_RSS_MIB} MiB after {watch.samples[-1]}")
        watch.look()
        if not line:
            raise RuntimeError((pathlib.Path(folder) / "load.log").read_text())
        figures = json.loads(line)
        return Outcome(name=case.name, load={**figures, "ranks": case.jobs * case.ranks},
                       incidents=list(watch.incidents.values()), samples=watch.samples,
                       seconds=case.seconds,
                       steady=steady_of(case, figures),
                       pss_mib=daemon.memory_mib("Pss"), disk_mib=daemon.disk_mib(),
                       files=sorted(path.name for path in daemon.files()),
                       unanswered=watch.unanswered, stop_seconds=daemon.stop_seconds,
                       idle_rss_mib=idle_rss_mib, machine_load=os.getloadavg()[0])
    finally:
        daemon.end()
        load.stdout.close()
        load.send_signal(signal.SIGCONT)  # a case may have stopped it
        load.terminate()
        load.wait()
