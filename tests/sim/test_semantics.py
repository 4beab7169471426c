# SPDX-License-Identifier: Apache-2.0
"""How the simulated NCCL behaves, above all how it hangs.

Each test starts a job of `sim_rank`s that say how far they come. A job that is
to end must end by itself. One that is to hang must come as far as expected, and
then say nothing more and not end for a while; only then is it killed.
"""

import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest
from processes import wait_for

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
LIMIT = 60  # seconds in which everything that will happen has happened
QUIET = 0.7  # seconds without a word that make a hang


class Job:
    """A running job, and the lines it has printed."""

    def __init__(self, scenario, ranks=4, **environment):
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen(
            [BUILD / "tests/ranks", "-n", str(ranks), "--keep-going", "--",
             BUILD / "tests/sim_rank", scenario],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env={**os.environ, **environment})
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.strip())
                self.changed.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._signal_all(signal.SIGKILL)
        self.process.wait()
        deadline = time.monotonic() + 5  # the ranks are dying, and hold their memory until then
        while self._signal_all(0) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _signal_all(self, number):
        """False: no process of the job is left."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait_for(self, what, ranks):
        expected = {f"rank {rank}: {what}" for rank in ranks}
        with self.changed:
            came = self.changed.wait_for(lambda: expected <= set(self.lines), LIMIT)
        assert came, f"{expected - set(self.lines)} missing in {self.lines}"

    def count(self, what):
        return sum(line.endswith(": " + what) for line in self.lines)

    def assert_hangs(self):
        before = len(self.lines)
        time.sleep(QUIET)
        assert self.process.poll() is None, self.process.stderr.read()
        assert len(self.lines) == before, self.lines

    def assert_ends(self):
        code = self.process.wait(LIMIT)
        self.reader.join(LIMIT)
        assert code == 0, self.process.stderr.read()


def test_init_waits_for_an_absent_rank():
    with Job("last_never_joins") as job:
        job.wait_for("away", [3])
        job.assert_hangs()
        assert job.count("joined") == 0


def test_first_collective_holds_the_host():
    with Job("last_misses_first") as job:
        job.wait_for("joined", range(4))
        job.wait_for("away", [3])
        job.assert_hangs()
        assert job.count("enqueued") == 0


def test_first_collective_returns_without_lazy_connect():
    with Job("last_misses_first", ROLLCALL_SIM_LAZY_CONNECT="0") as job:
        job.wait_for("away", [3])
        job.wait_for("enqueued", range(3))
        job.assert_hangs()
        assert job.count("done") == 0


@pytest.mark.parametrize("scenario,stuck", [
    ("last_misses_second", range(3)),
    ("last_broadcasts", range(4)),
    ("last_sends_more", range(4)),
    ("last_has_other_root", range(4)),
])
def test_collective_returns_and_never_completes(scenario, stuck):
    with Job(scenario) as job:
        job.wait_for("joined", range(4))
        job.wait_for("enqueued", stuck)
        if 3 not in stuck:
            job.wait_for("away", [3])
        job.assert_hangs()
        assert job.count("done") == 0


def test_empty_collective_is_dropped_and_the_others_hang():
    with Job("last_sends_nothing") as job:
        job.wait_for("enqueued", range(4))
        job.wait_for("done", [3])
        job.assert_hangs()
        assert job.count("done") == 1


@pytest.mark.parametrize("scenario", ["last_sends_more", "last_has_other_root"])
def test_mismatch_may_complete(scenario):
    with Job(scenario, ROLLCALL_SIM_MISMATCH="wrong") as job:
        job.assert_ends()
        assert job.count("done") == 4


def test_seed_decides_a_mismatch_the_same_way_on_all_ranks():
    outcomes = set()
    for seed in range(6):
        with Job("last_sends_more", ROLLCALL_SIM_SEED=str(seed)) as job:
            job.wait_for("enqueued", range(4))
            time.sleep(QUIET)
            outcomes.add(job.count("done"))
    assert outcomes == {0, 4}


def test_agreement_gives_the_right_sum():
    with Job("all_agree") as job:
        job.assert_ends()
        assert job.count("right") == 4


@pytest.mark.parametrize("scenario", ["last_has_other_type", "last_has_other_reduction"])
def test_other_type_or_reduction_completes_with_wrong_values(scenario):
    with Job(scenario) as job:
        job.assert_ends()
        assert job.count("wrong") == 4


def test_first_send_without_a_receiver_holds_the_host():
    with Job("send_to_nobody", ranks=2) as job:
        job.wait_for("joined", [0, 1])
        job.wait_for("away", [1])
        job.assert_hangs()
        assert job.count("enqueued") == 0


def test_later_send_without_a_receiver_holds_the_stream():
    with Job("second_send_to_nobody", ranks=2) as job:
        job.wait_for("enqueued", [0])
        job.wait_for("away", [1])
        job.assert_hangs()
        assert job.count("done") == 0


def test_crossing_sends_deadlock():
    with Job("crossing_sends", ranks=2) as job:
        job.wait_for("enqueued", [0, 1])
        job.assert_hangs()
        assert job.count("done") == 0


def test_small_crossing_sends_pass_when_eager():
    with Job("crossing_sends", ranks=2, ROLLCALL_SIM_EAGER="65536") as job:
        job.assert_ends()
        assert job.count("done") == 2


def test_receiving_another_size_hangs():
    with Job("other_size_received", ranks=2) as job:
        job.wait_for("enqueued", [0, 1])
        job.assert_hangs()
        assert job.count("done") == 0


def test_receiving_another_size_may_complete():
    with Job("other_size_received", ranks=2, ROLLCALL_SIM_MISMATCH="wrong") as job:
        job.assert_ends()
        assert job.count("done") == 2


@pytest.mark.parametrize("scenario,ranks", [
    ("sends_keep_order", 2),
    ("non_blocking", 4),
    ("split", 6),
    ("revoked", 4),
    ("bad_arguments", 3),
    ("mixed_group", 5),
    ("graph", 4),
    ("mixed_group", 64),
    ("single_process", 1),
    ("last_swaps_communicators", 4),
])
def test_ends_well(scenario, ranks):
    with Job(scenario, ranks=ranks) as job:
        job.assert_ends()


@pytest.mark.parametrize("scenario", ["abort_releases_stream", "abort_releases_host",
                                      "non_blocking_alone", "shrink_without_last"])
def test_others_get_away_from_an_absent_rank(scenario):
    with Job(scenario) as job:
        job.wait_for("done", range(3))


def test_abort_found_the_host_waiting():
    with Job("abort_releases_host") as job:
        job.wait_for("done", range(3))
        for rank in range(3):
            aborting = job.lines.index(f"rank {rank}: aborting")
            assert aborting < job.lines.index(f"rank {rank}: returned")


def test_swapped_communicators_deadlock_where_kernels_take_turns():
    with Job("last_swaps_communicators", ROLLCALL_SIM_SERIALIZE="1") as job:
        job.wait_for("enqueued", range(4))
        job.assert_hangs()
        assert job.count("done") == 0


def test_split_waits_for_all_ranks_of_the_parent():
    with Job("last_misses_split") as job:
        job.wait_for("joined", range(4))
        job.wait_for("away", [3])
        job.assert_hangs()
        assert job.count("done") == 0


def test_destroy_waits_only_for_its_own_work():
    with Job("destroy_alone") as job:
        job.wait_for("done", range(3))


def test_destroy_can_be_made_collective():
    with Job("destroy_alone", ROLLCALL_SIM_DESTROY="collective") as job:
        job.wait_for("away", [3])
        job.assert_hangs()
        assert job.count("done") == 0


def test_one_thread_can_destroy_the_ranks_of_its_process_in_turn():
    with Job("destroy_pairs_in_turn", ranks=1, ROLLCALL_SIM_DESTROY="collective") as job:
        job.assert_ends()


def test_a_collective_destroy_of_several_ranks_waits_for_other_processes():
    with Job("destroy_pairs_in_turn", ranks=2, ROLLCALL_SIM_DESTROY="collective") as job:
        job.wait_for("away", [1])
        job.wait_for("half done", [0])
        job.assert_hangs()
        assert job.count("done") == 0


def test_death_of_a_peer_is_waited_for_without_an_error():
    with Job("last_is_killed") as job:
        job.wait_for("enqueued", range(3))
        job.assert_hangs()


def test_death_of_a_peer_can_be_made_an_error():
    with Job("last_is_killed", ROLLCALL_SIM_PEER_DEATH="error") as job:
        job.wait_for("remote error", range(3))


def leftovers():
    return {path.name for path in pathlib.Path("/dev/shm").glob("rollcall-sim-*")}


def test_next_job_clears_what_a_killed_one_left():
    before = leftovers()
    with Job("last_never_joins") as job:
        job.wait_for("away", [3])
        job.assert_hangs()
        left = leftovers() - before
        assert left
    with Job("all_agree") as job:
        job.assert_ends()
    wait_for(lambda: not left & leftovers())  # those of other jobs go when these end


def dynamic_symbols():
    listing = subprocess.run(["nm", "-D", "--defined-only", BUILD / "sim/libnccl.so.2"],
                             check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        address, kind, name = line.split()
        yield name, kind, address


def test_every_function_has_a_strong_twin_at_the_same_address():
    symbols = {name: (kind, address) for name, kind, address in dynamic_symbols()}
    public = [name for name in symbols if name.startswith("nccl")]
    assert len(public) > 40
    for name in public:
        assert symbols[name][0] == "W"
        assert symbols["p" + name] == ("T", symbols[name][1])
    assert all(name.startswith(("nccl", "pnccl")) for name in symbols)


def test_calls_to_public_functions_can_be_interposed():
    relocations = subprocess.run(["readelf", "-rW", BUILD / "sim/libnccl.so.2"], check=True,
                                 capture_output=True, text=True).stdout
    slots = [line for line in relocations.splitlines() if "JUMP_SLO" in line]
    for name in ("ncclBroadcast", "ncclGetUniqueId"):
        assert any(f" {name} " in line for line in slots), name
