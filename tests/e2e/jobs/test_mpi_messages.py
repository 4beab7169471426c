# SPDX-License-Identifier: Apache-2.0
"""Real MPI jobs that stand still in messages, in C, Fortran and Python, and the same jobs without the mistake."""
import pathlib
import shutil
import subprocess

import pytest
from conftest import long
from mpi_jobs import MPIRUN_FLAGS, VICTIM_SOURCES, build_mpi_job, culprits, mpirun, run_mpi_job, said_of_the_job

# One after the other: ranks of MPI that wait keep a processor each busy.
pytestmark = pytest.mark.xdist_group("mpi")

# What, the cause, who is blamed first, and a part of the output.
HANGS = [
    ("recv without send", "unmatched_p2p", [2], "never issued the send that matches MPI_Recv from rank 2"),
    ("send to the wrong rank", "unmatched_p2p", [0, 1], "MPI_Recv from rank 0"),
    ("another tag", "unmatched_p2p", [0, 1], "with tag 8 that it has not received"),
    ("ring of sends", "deadlock", [0, 1, 2, 3], "MPI_Send"),
    ("one request unserved", "unmatched_p2p", [2], "never issued the send"),
    ("send without recv", "unmatched_p2p", [3], "never issued the receive"),
    ("worker leaves", "rank_exited", [3], "MPI_Finalize"),
    ("test loop", "unmatched_p2p", [2], "never issued the send"),
    ("sleepy probe loop", "unmatched_p2p", [2], "never issued the send"),
    ("barrier loop", "missing_rank", [2], "MPI_Ibarrier"),
    ("persistent", "unmatched_p2p", [2], "never issued the"),
    ("listener", "unmatched_p2p", [2], "never issued the send"),
    ("busy master", "unmatched_p2p", [0], "never issued the send"),
]
# Open MPI 4.1 has none of these.
HANGS_OF_MPI_4 = [
    ("persistent barrier", "missing_rank", [2], "MPI_Ibarrier"),
    ("big counts", "unmatched_p2p", [2], "never issued the send"),
]
HEALTHY = [what for what, *_ in HANGS + HANGS_OF_MPI_4] + ["pool", "early", "work between tests"]
FIRST = ["recv without send", "ring of sends", "worker leaves", "test loop"]  # for the gate


@pytest.fixture(scope="module", params=["openmpi", long("mpich")])
def mpi(request, tmp_path_factory):
    return build_mpi_job(request.param, "mpi_messages", tmp_path_factory)


def in_the_gate(rows):
    """The first rows of their kind; the others for --all."""
    return [row if row[0] in FIRST else long(*row) for row in rows]


def assert_blamed(run, cause, who, words):
    exit_code, output, incidents = run
    assert exit_code == 75
    verdicts = incidents[0]
    assert sorted(culprits(verdicts[0])) == who
    assert cause in [verdict["cause"] for verdict in verdicts]
    everything = output + "".join("".join([v["summary"], *v["evidence"], *v["missing_evidence"]]) for v in verdicts)
    assert words in everything


def assert_left_alone(run, words="done"):
    exit_code, output, incidents = run
    assert exit_code == 0 and incidents == []
    assert words in output and not said_of_the_job(output)


@pytest.mark.parametrize("what, cause, who, words", in_the_gate(HANGS))
def test_the_rank_that_owes_a_message_is_the_culprit(mpi, tmp_path, what, cause, who, words):
    # A look at a loop of tests shows after some seconds only whether it waits.
    hang_after = "6s" if "loop" in what else "2s"
    assert_blamed(run_mpi_job(mpi, [what], tmp_path, hang_after=hang_after), cause, who, words)


@pytest.mark.parametrize("what", [what if what in ("pool", "work between tests") else long(what) for what in HEALTHY])
def test_the_same_job_without_the_mistake_is_left_alone(mpi, tmp_path, what):
    hang_after = "4s" if what == "work between tests" else "2s"
    assert_left_alone(run_mpi_job(mpi, [what, "fixed"], tmp_path, hang_after=hang_after))


@pytest.mark.parametrize("mpi", [long("mpich")], indirect=True)
@pytest.mark.parametrize("what, cause, who, words", HANGS_OF_MPI_4)
def test_persistent_collectives_and_big_counts(mpi, tmp_path, what, cause, who, words):
    assert_blamed(run_mpi_job(mpi, [what], tmp_path), cause, who, words)


@pytest.mark.long
def test_more_tags_than_the_library_counts_one_by_one(mpi, tmp_path):
    run = run_mpi_job(mpi, ["recv without send"], tmp_path, environment={"MANY_TAGS": "1"})
    assert_blamed(run, "unmatched_p2p", [2], "its tags are counted together")


def test_the_place_is_that_of_the_culprit(mpi, tmp_path):
    _, _, (verdicts,) = run_mpi_job(mpi, ["recv without send"], tmp_path)
    assert "in Forget" in verdicts[0]["culprits"][0]["at"]
    assert "mpi_messages.c" in verdicts[0]["culprits"][0]["at"]


@pytest.fixture(scope="module", params=["-DF08", long("-UF08")])
def fortran(request, tmp_path_factory):
    """fortran(MPI) -> the command that starts 4 ranks of mpi_fortran.F90, by mpi_f08 or by mpif.h."""

    def build(name):
        if shutil.which(f"mpif90.{name}") is None or shutil.which("gfortran") is None:
            pytest.skip(f"mpif90.{name} or gfortran is not installed (Debian: gfortran)")
        program = tmp_path_factory.mktemp(name) / "mpi_fortran"
        subprocess.run([f"mpif90.{name}", "-g", "-O1", request.param, "-o", program,
                        VICTIM_SOURCES / "mpi_fortran.F90"], check=True)
        return mpirun(name, program)

    return build


@pytest.mark.parametrize("name", ["openmpi", long("mpich")])
@pytest.mark.parametrize("what, cause", [("skips a send", "unmatched_p2p"), long("skips an allreduce", "missing_rank"),
                                         long("skips a message", "unmatched_p2p")])
def test_fortran(fortran, name, tmp_path, what, cause):
    assert_blamed(run_mpi_job(fortran(name), [what], tmp_path), cause, [2], "")


@pytest.mark.long
@pytest.mark.parametrize("name", MPIRUN_FLAGS)
def test_fortran_without_a_mistake(fortran, name, tmp_path):
    assert_left_alone(run_mpi_job(fortran(name), ["healthy"], tmp_path), "total")


@pytest.fixture
def mpi4py():
    """The command that starts 4 ranks of mpi4py_rank.py."""
    has_it = subprocess.run(["/usr/bin/python3", "-c", "import mpi4py"], check=False, capture_output=True)
    if has_it.returncode != 0:
        pytest.skip("mpi4py is not installed (Debian: python3-mpi4py)")
    return mpirun("openmpi", "/usr/bin/python3", pathlib.Path(__file__).with_name("mpi4py_rank.py"))


@pytest.mark.parametrize("what", ["object", long("polls")])
def test_objects_of_mpi4py(mpi4py, tmp_path, what):
    run = run_mpi_job(mpi4py, [what], tmp_path, hang_after="6s")
    assert_blamed(run, "unmatched_p2p", [2], "never issued the send")
    assert "mpi4py_rank.py" in run[2][0][0]["culprits"][0]["at"]


@pytest.mark.long
def test_mpi4py_without_a_mistake(mpi4py, tmp_path):
    assert_left_alone(run_mpi_job(mpi4py, ["healthy"], tmp_path), "")
