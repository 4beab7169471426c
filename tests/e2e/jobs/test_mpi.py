# SPDX-License-Identifier: Apache-2.0
"""Real MPI jobs, with each MPI: host barriers and MPI's other collectives."""
import pytest
from conftest import long
from mpi_jobs import MPIRUN_FLAGS, build_mpi_job, culprits, run_mpi_job, said_of_the_job

# One after the other: ranks of MPI that wait keep a processor each busy.
pytestmark = pytest.mark.xdist_group("mpi")


@pytest.fixture(scope="module", params=["openmpi", long("mpich")])
def mpi(request, tmp_path_factory):
    """The command that starts 4 ranks of mpi_job.c, built with this MPI."""
    return build_mpi_job(request.param, "mpi_job", tmp_path_factory)


@pytest.fixture
def go(mpi, tmp_path):
    """go(what) -> (exit code, output, verdicts). `until`: ends the job once stderr holds this."""

    def run(what, **options):
        exit_code, output, incidents = run_mpi_job(mpi, [what], tmp_path, **options)
        return exit_code, output, [verdicts[0] for verdicts in incidents]

    return run


each_mpi = pytest.mark.parametrize("mpi", MPIRUN_FLAGS, indirect=True)


@each_mpi
def test_a_healthy_job_is_left_alone(go):
    exit_code, output, verdicts = go("healthy", hang_after="10s")
    assert exit_code == 0 and verdicts == []
    assert "sum 2" in output and not said_of_the_job(output)


# With MPICH the others do not get out of a broadcast before its root calls MPI again.
@each_mpi
def test_a_rank_that_waits_for_requests_and_hands_them_out_is_idle(go):
    exit_code, output, verdicts = go("serves requests", hang_after="2s")
    assert exit_code == 0 and verdicts == []
    assert "served" in output and not said_of_the_job(output)


@each_mpi
def test_the_rank_that_never_enters_a_barrier_is_the_culprit(go):
    exit_code, _, (verdict,) = go("stuck")
    assert exit_code == 75
    assert (verdict["cause"], culprits(verdict)) == ("missing_rank", [2])
    assert verdict["waiting_ranks"] == [0, 1, 3]
    assert verdict["communicator"]["name"] == "MPI_COMM_WORLD"
    assert verdict["call"]["operation"] == "MPI_Barrier" and verdict["call"]["position"] == 18


def test_a_mismatch_needs_no_timeout(go):
    _, _, (verdict,) = go("another call", hang_after="10m")
    assert (verdict["cause"], culprits(verdict)) == ("operation_mismatch", [2])
    assert verdict["waited_seconds"] < 60


@pytest.mark.long
def test_mpi_sizes_compare_as_bytes(go):
    _, output, (verdict,) = go("another size")
    assert (verdict["cause"], culprits(verdict)) == ("argument_mismatch", [1])
    assert "MPI_Bcast(128 bytes, root 0)" in output and "MPI_Bcast(256 bytes, root 0)" in output


@pytest.mark.parametrize("how", [long("exit"), "kill"])
def test_the_rank_that_ended_first_is_the_culprit_though_the_launcher_ends_all(go, how):
    exit_code, _, (verdict,) = go(how)
    assert exit_code != 0
    assert (verdict["cause"], culprits(verdict)) == ("rank_died", [2])


def test_a_split_that_one_rank_does_not_join(go):
    _, _, (verdict,) = go("late to a split")
    assert (verdict["cause"], culprits(verdict)) == ("init_incomplete", [3])
    assert verdict["call"]["operation"] == "MPI_Comm_split"


@pytest.mark.long
def test_children_of_a_split_are_different_communicators(go):
    _, _, (verdict,) = go("stuck in the half")
    assert (verdict["cause"], culprits(verdict)) == ("missing_rank", [1])


def test_a_finalize_that_one_rank_never_enters(go):
    _, _, (verdict,) = go("never finalizes")
    assert (verdict["cause"], culprits(verdict)) == ("teardown_hang", [0])
    assert verdict["call"]["operation"] == "MPI_Finalize"


@pytest.mark.parametrize("meanwhile", ["works meanwhile", long("serves meanwhile")])
def test_an_open_call_is_no_wait_while_there_is_something_else_to_do(go, meanwhile):
    # Half as long as the call is open: a busy machine lets a rank come so much later than the others.
    exit_code, output, verdicts = go(meanwhile, hang_after="5s" if meanwhile == "works meanwhile" else "2s")
    assert exit_code == 0 and verdicts == []
    assert "sum 2" in output and not said_of_the_job(output)


def test_the_rank_that_never_makes_a_nonblocking_call_is_the_culprit(go):
    exit_code, _, (verdict,) = go("stuck before an Ibarrier")
    assert exit_code == 75
    assert (verdict["cause"], culprits(verdict)) == ("missing_rank", [2])
    assert verdict["waiting_ranks"] == [0, 1, 3]
    assert verdict["call"]["operation"] == "MPI_Ibarrier"


@pytest.mark.long
def test_a_wait_for_calls_of_two_communicators_waits_for_both(go):
    _, _, (verdict,) = go("stuck before a second Ibarrier")
    assert (verdict["cause"], culprits(verdict)) == ("missing_rank", [2])
    assert verdict["communicator"]["name"] != "MPI_COMM_WORLD"
    assert (verdict["call"]["operation"], verdict["call"]["position"]) == ("MPI_Ibarrier", 0)


@pytest.mark.long
def test_a_blocking_call_waits_though_an_earlier_one_is_still_open(go):
    _, _, (verdict,) = go("stuck behind an Ibarrier")
    assert (verdict["cause"], culprits(verdict)) == ("missing_rank", [1])
    assert verdict["call"]["operation"] == "MPI_Allreduce"


@pytest.mark.long
@pytest.mark.parametrize("what, theirs", [("another nonblocking call", "MPI_Ibcast"),
                                          ("blocks where others do not", "MPI_Barrier")])
def test_a_nonblocking_call_matches_no_other(go, what, theirs):
    _, output, (verdict,) = go(what)
    assert (verdict["cause"], culprits(verdict)) == ("operation_mismatch", [2])
    assert theirs in output and "MPI_Ibarrier" in output


def test_the_rank_that_never_waits_for_its_call_is_the_culprit(go, mpi):
    if "openmpi" not in mpi[0]:
        pytest.skip("MPICH has done all of it within the call")
    _, output, (verdict,) = go("stuck after a call",
                               until="does not act yet: the verdict is only possible")
    assert (verdict["cause"], culprits(verdict)) == ("stalled_in_flight", [0])
    assert verdict["waiting_ranks"] == [1, 2, 3]
    assert "does not wait for MPI_Iallreduce #1" in output and "call MPI_Test or MPI_Iprobe" in output


@pytest.mark.long
def test_a_receive_and_a_barrier_that_wait_for_each_other(go):
    _, _, (verdict,) = go("stuck in a receive")
    assert (verdict["cause"], sorted(culprits(verdict))) == ("unmatched_p2p", [0, 2])
    assert any("MPI_Recv" in line for line in verdict["evidence"])


@pytest.mark.long
def test_a_grid_that_one_rank_does_not_join(go):
    _, _, (verdict,) = go("late to a grid")
    assert (verdict["cause"], culprits(verdict)) == ("init_incomplete", [1])
    assert verdict["call"]["operation"] == "MPI_Cart_create"


@pytest.mark.long
def test_a_group_of_which_one_does_not_join(go):
    _, output, (verdict,) = go("late to a pair")
    # Rank 1 of the group of two. Only the group's members know the process of this rank.
    assert (verdict["cause"], culprits(verdict)) == ("init_incomplete", [1])
    assert verdict["call"]["operation"] == "MPI_Comm_create_group"
    assert "rank 1 of the communicator" in output


@pytest.mark.long
def test_a_communicator_made_by_its_members_only_has_one_id(go):
    _, _, (verdict,) = go("stuck in a pair")
    assert (verdict["cause"], culprits(verdict)) == ("missing_rank", [3])
    assert verdict["waiting_ranks"] == [2] and verdict["communicator"]["size"] == 2
