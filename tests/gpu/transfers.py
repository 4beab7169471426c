# SPDX-License-Identifier: Apache-2.0
"""What holds up the transfers of a collective over the network, by what NCCL says of them: a kernel in front of a
rank's collective, a proxy thread that is held, a link that is cut. With each a control: the same for a moment only,
after which the job ends by itself.

The ranks of one machine stand for four hosts: each has an agent of its own, which calls itself node-RANK.
"""
import contextlib
import json
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import urllib.request

import held_thread
from cut_link import Lacking, TwoNetworks
from machine import SIM

PROGRAM = "trains_past_a_gate"
RANKS = 4
GATE_STEP = 20  # no collective of the job comes before its steps
BEHIND_GATE_STEPS = 100
# Suspected after half of it: by then a transfer has stood still for longer than one that is only slow.
HANG_AFTER = 8
MOMENT = 1  # seconds that a control's fault lasts
LIMIT_SECONDS = 150
SETTLED_SECONDS = 30  # from the confirmed incident to its last word
PROXY_THREAD = "NCCL Progress"

# NCCL names its threads only if it is told to.
JOB = {"GATE_STEP": str(GATE_STEP), "NCCL_SET_THREAD_NAME": "1", "ROLLCALL_JOB": "a-job"}
SIM_JOB = {"ROLLCALL_SIM_NETWORK": "socket"} if SIM else {}


def sim_fault(fault):
    """The environment of the simulated NCCL for what it cannot have really; of the collective behind the gate."""
    return {"ROLLCALL_SIM_NETWORK_FAULT": f"{fault}@{GATE_STEP}"} if SIM else {}


class Job:
    """Four ranks at the gate, a daemon, and an agent for each rank."""

    def __init__(self, machine, environment, network=None):
        self.machine, self.folder = machine, pathlib.Path(tempfile.mkdtemp(dir=machine.out, prefix="transfers-"))
        self.gate = self.folder / "gate"
        self.processes = []
        try:
            self._start(environment, network)
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.end()

    def _start(self, environment, network):
        listen, page = free_ports(2)
        self.page = f"http://127.0.0.1:{page}"
        self._begin("daemon", [*self.machine.daemon, f"--listen=127.0.0.1:{listen}", f"--http=127.0.0.1:{page}",
                               f"--hang-after={HANG_AFTER}s", f"--report-dir={self.folder}/reports"])
        for rank in range(RANKS):
            (self.folder / str(rank)).mkdir(mode=0o700)
            self._begin(f"agent-{rank}", [*self.machine.agent, f"--daemon=127.0.0.1:{listen}", "--scope=directory",
                                          f"--dir={self.folder}/{rank}", f"--host=node-{rank}"])
        command = self.machine.in_job([self.machine.programs / PROGRAM, str(GATE_STEP + BEHIND_GATE_STEPS)])
        ranks = [self.machine.programs / "ranks", "-n", str(RANKS), "--keep-going", "--", "bash", "-c",
                 f'ROLLCALL_DIR={self.folder}/$RANK exec "$@"', "bash", *on_its_side(network), *command]
        self.job = self._begin("job", ranks, {**JOB, **SIM_JOB, **environment, "GATE": str(self.gate),
                                              "LD_PRELOAD": str(self.machine.library)})

    def _begin(self, name, command, environment=None):
        with (self.folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen([str(part) for part in command], env=self.machine.environ(environment),
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()

    def output(self):
        return (self.folder / "job.log").read_text(errors="replace")

    def pids_at_gate(self):
        """{rank: its process}, once all ranks stand there."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline and self.job.poll() is None:
            found = re.findall(r"^rank (\d+) \(pid (\d+)\) is at the gate", self.output(), re.M)
            if len(found) == RANKS:
                return {int(rank): int(pid) for rank, pid in found}
            time.sleep(0.1)
        raise RuntimeError("the ranks did not come to the gate")

    def open_gate(self):
        self.gate.touch()

    def ask(self, path):
        with urllib.request.urlopen(f"{self.page}/api/v1/{path}", timeout=60) as answer:
            return json.load(answer)

    def incident(self):
        """The confirmed incident, or None."""
        incidents = self.ask("incidents")["incidents"]
        if not incidents or not incidents[0].get("confirmed_at"):
            return None
        return self.ask(f"incident?id={incidents[0]['id']}")


def free_ports(count):
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def on_its_side(network):
    """What the command of a rank begins with: the first half of the ranks is on side 0."""
    if network is None:
        return []
    sides = ["if", "[", "$RANK", "-lt", str(RANKS // 2), "];", "then", "exec", *network.enter(0), '"$@";', "fi;",
             "exec", *network.enter(1), '"$@"']
    return ["bash", "-c", " ".join(sides), "bash"]


def culprits_of(verdict):
    return [culprit["rank"] for culprit in verdict["culprits"]]


def wait_for_verdict(job, judge, guilty):
    """judge(incident): why it is not right, or "". -> (why the last one is not, the last verdict). A verdict that is
    certain and blames one who is not guilty ends the wait."""
    why, verdict, deadline = "no confirmed incident", None, time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.5)
        incident = job.incident()
        if incident is None:
            continue
        if verdict is None:
            deadline = min(deadline, time.monotonic() + SETTLED_SECONDS)
        verdict = incident["verdicts"][0]
        if verdict["certainty"] == "certain" and not set(culprits_of(verdict)) <= set(guilty):
            return f"certain, and wrong: ranks {culprits_of(verdict)}: {verdict['summary']}", verdict
        why = judge(incident)
        if not why:
            break
    return why, verdict


def judge_healthy(job):
    """-> (why it was not, the verdict if there is one)"""
    try:
        code = job.job.wait(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"the job did not end within {LIMIT_SECONDS} s", None
    incidents = job.ask("incidents")["incidents"]
    verdict = job.ask(f"incident?id={incidents[0]['id']}")["verdicts"][0] if incidents else None
    if code != 0:
        return f"exit code {code}", verdict
    return (f"an incident: {verdict['summary']}" if incidents else ""), verdict


def walk_is(incident, fault, rank):
    """Why the walk over the transfers does not end so, or ""."""
    verdict = incident["verdicts"][0]
    walk = verdict.get("network", {})
    found = (verdict["cause"], culprits_of(verdict), walk.get("fault"), walk.get("rank"))
    if found == ("stalled_in_flight", [rank], fault, rank):
        return ""
    return "cause {}, culprits {}, the walk ends with {} of rank {}".format(*found) + f": {verdict['summary']}"


# --- A kernel that spins in front of a rank's collective.

SPINS = 2


def kernel_spins(machine, markers):
    """The other ranks' kernels wait for the rank's. With GPU markers they may say so before any transfer does."""
    environment = {"SPIN_RANK": str(SPINS), "ROLLCALL_MARKERS": markers, **sim_fault(f"kernel:{SPINS}")}

    def judge(incident):
        verdict = incident["verdicts"][0]
        if markers == "1" and verdict["cause"] == "blocked_before_start" and culprits_of(verdict) == [SPINS]:
            return ""
        return walk_is(incident, "own_gpu", SPINS)

    with Job(machine, environment) as job:
        job.pids_at_gate()
        job.open_gate()
        return *wait_for_verdict(job, judge, [SPINS]), job.output()


def kernel_spins_a_moment(machine):
    environment = {"SPIN_RANK": str(SPINS), "SPIN_SECONDS": str(MOMENT)}
    if SIM:  # slow in its last three collectives, a third of a second and more each
        environment["ROLLCALL_SIM_NETWORK_FAULT"] = f"slow:{SPINS}@{GATE_STEP + BEHIND_GATE_STEPS - 3}"
    with Job(machine, environment) as job:
        job.pids_at_gate()
        job.open_gate()
        return *judge_healthy(job), job.output()


# --- A proxy thread that is held.

HELD = 1


def names_proxy(incident):
    """The walk, and the stack of the thread: a person sees where it stands."""
    why = walk_is(incident, "proxy", HELD)
    if why:
        return why
    stacks = [stack for stack in incident["stacks"] if stack["rank"] == HELD]
    threads = [thread for stack in stacks for thread in stack["threads"] if thread["name"].startswith(PROXY_THREAD)]
    if any(thread["frames"] for thread in threads):
        return ""
    return f"the stacks of rank {HELD} have no frames of its thread {PROXY_THREAD}"


def need(lacks):
    if lacks:
        raise Lacking(lacks)


def hold(job, pids):
    """Holds the proxy thread of a rank; its process runs on."""
    tid = held_thread.find_thread(pids[HELD], PROXY_THREAD)
    held = held_thread.HeldThread(tid)
    states = {held_thread.state_of(pids[HELD], of) for of in (tid, pids[HELD])}
    if states & {"T", "t"}:
        raise RuntimeError(f"the process of rank {HELD} has stopped: {states}")
    return held


def proxy_is_held(machine):
    need(held_thread.lacks())
    with Job(machine, {}) as job:
        hold(job, job.pids_at_gate())
        job.open_gate()
        return *wait_for_verdict(job, names_proxy, [HELD]), job.output()


def proxy_is_held_at_work(machine):
    """In the midst of a collective. What has come for a held thread looks like what has not come: the end of a dead
    link may be named instead, but not another rank alone."""
    need(held_thread.lacks())

    def judge(incident):
        verdict = incident["verdicts"][0]
        walk = verdict.get("network", {})
        if walk.get("fault") == "link" and HELD in (walk["rank"], walk["peer"]) and verdict["certainty"] != "certain":
            return ""
        return walk_is(incident, "proxy", HELD)

    with Job(machine, {}) as job:
        pids = job.pids_at_gate()
        job.open_gate()
        time.sleep(MOMENT / 2)
        hold(job, pids)
        return *wait_for_verdict(job, judge, [HELD]), job.output()


def proxy_is_held_a_moment(machine):
    need(held_thread.lacks())
    with Job(machine, {}) as job:
        held = hold(job, job.pids_at_gate())
        job.open_gate()
        time.sleep(MOMENT)
        held.release()
        return *judge_healthy(job), job.output()


# --- A link that is cut.

LAST_BEFORE_LINK = RANKS // 2 - 1  # of the ranks of side 0; the next is on side 1
IN_TWO_NETWORKS = {"NCCL_SOCKET_IFNAME": "rcgpu", "NCCL_SOCKET_FAMILY": "AF_INET"}


def names_both_ends(incident):
    verdict = incident["verdicts"][0]
    walk = verdict.get("network", {})
    if walk.get("fault") != "link":
        return walk_is(incident, "link", LAST_BEFORE_LINK)
    ends = walk["rank"], walk["peer"]
    if (ends[0] < RANKS // 2) == (ends[1] < RANKS // 2):
        return f"the link from rank {ends[0]} to rank {ends[1]} was not cut"
    evidence = " ".join(verdict["evidence"])
    if all(f"rank {end} (node-{end}" in evidence for end in ends):
        return ""
    return f"the evidence does not name both of ranks {ends}: {evidence}"


def link_is_cut(machine):
    with TwoNetworks() as network:
        print(f"      the link is cut by {network.way}", flush=True)
        with Job(machine, {**IN_TWO_NETWORKS, **sim_fault(f"link:{LAST_BEFORE_LINK}")}, network) as job:
            job.pids_at_gate()
            network.cut()
            job.open_gate()
            return *wait_for_verdict(job, names_both_ends, range(RANKS)), job.output()


def link_is_cut_a_moment(machine):
    """TCP sends again what was lost."""
    with TwoNetworks() as network, Job(machine, IN_TWO_NETWORKS, network) as job:
        job.pids_at_gate()
        network.cut()
        job.open_gate()
        time.sleep(MOMENT)
        network.restore()
        return *judge_healthy(job), job.output()


# Name: what runs it -> (why it did not pass, the verdict, what the job said).
CHECKS = {
    "kernel-spins": lambda machine: kernel_spins(machine, "0"),
    "kernel-spins-with-markers": lambda machine: kernel_spins(machine, "1"),
    "kernel-spins-a-moment": kernel_spins_a_moment,
    "proxy-is-held": proxy_is_held,
    "proxy-is-held-at-work": proxy_is_held_at_work,
    "proxy-is-held-a-moment": proxy_is_held_a_moment,
    "link-is-cut": link_is_cut,
    "link-is-cut-a-moment": link_is_cut_a_moment,
}


def check(machine, names, results):
    """Runs those of these names."""
    chosen = [name for name in CHECKS if not names or name in names]
    if not chosen:
        return
    machine.compile("tests/support/ranks.cc")
    machine.compile(f"tests/e2e/victims/{PROGRAM}.cc")
    for name in chosen:
        try:
            why, verdict, output = CHECKS[name](machine)
            results.add(name, why, verdict, output)
        except Lacking as what:
            results.add(name, str(what), skipped=True)
        except (RuntimeError, OSError) as error:
            results.add(name, f"{type(error).__name__}: {error}")
