# SPDX-License-Identifier: Apache-2.0
"""The folders of `rollcall run`: a run removes no live folder and no folder of another program."""
import os
import pathlib
import subprocess

import pytest
from conftest import ROLLCALL, VICTIMS, long, wait_for

IN_OTHER_PIDS = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def needs_pid_namespaces():
    if subprocess.run([*IN_OTHER_PIDS, "true"], capture_output=True).returncode != 0:
        pytest.skip("this system permits no pid namespaces of one's own")


def start(folder, *command, prefix=(), **more):
    return subprocess.Popen([*prefix, ROLLCALL, "run", "--sim", "--http=none",
                             f"--report-dir={folder}/reports", "--", *command],
                            env={**os.environ, "ROLLCALL_DIR": str(folder)},
                            stderr=subprocess.PIPE, text=True, **more)


def segments(folder):
    return list(folder.glob("run-*/*.seg"))


def ranks_in(folder):
    return [int(path.name.partition("-")[0]) for path in segments(folder)]


def has_memory(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/maps").read_text() != ""
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill_all(pids):
    for pid in pids:
        os.kill(pid, 9)
    wait_for(lambda: not any(map(has_memory, pids)))


def test_a_run_in_another_pid_namespace_leaves_the_folder_of_a_live_one_alone(tmp_path):
    needs_pid_namespaces()
    first = start(tmp_path, VICTIMS / "ranks", "-n", "2", "--", VICTIMS / "one_rank_stops_calling",
                  prefix=IN_OTHER_PIDS)
    try:
        wait_for(lambda: len(segments(tmp_path)) == 2)
        before = segments(tmp_path)
        second = start(tmp_path, "true", prefix=IN_OTHER_PIDS)
        second.communicate(timeout=120)
        assert segments(tmp_path) == before
        outside = start(tmp_path, "true")
        outside.communicate(timeout=120)
        assert segments(tmp_path) == before
    finally:
        first.kill()
        first.wait()


@pytest.fixture
def other_host(tmp_path):
    """A prefix for a command: gives it another boot id, as on another host with the same folder."""
    boot_id = tmp_path / "boot_id"
    boot_id.write_text("5f0c4a39-0000-4000-8000-0123456789ab\n")
    here = "/proc/sys/kernel/random/boot_id"
    prefix = ["unshare", "--mount", "sh", "-c", f'mount --bind {boot_id} {here} && exec "$@"', "sh"]
    if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("this system permits no mounts of one's own")
    return prefix


def kill_with_ranks(job, folder):
    """Releases the locks: locks that another host keeps local look like this."""
    ranks = ranks_in(folder)
    job.kill()
    job.wait()
    kill_all(ranks)


HAS_OWNER = pytest.mark.parametrize("has_owner", [True, long(False)])


def forget_owner(folder):
    """As if ranks had made the folder again, after another run had removed it."""
    for owner in folder.glob("run-*/run.owner"):
        owner.unlink()


@HAS_OWNER
def test_a_folder_of_another_host_stays_even_if_unlocked(tmp_path, other_host, has_owner):
    folder = tmp_path / "shared"
    job = start(folder, VICTIMS / "ranks", "-n", "2", "--", VICTIMS / "one_rank_stops_calling",
                prefix=other_host)
    wait_for(lambda: len(segments(folder)) == 2)
    kill_with_ranks(job, folder)
    if not has_owner:
        forget_owner(folder)
    start(folder, "true").communicate(timeout=120)
    assert len(segments(folder)) == 2
    start(folder, "true", prefix=other_host).communicate(timeout=120)
    assert list(folder.glob("run-*")) == [], "its own host removes it"


@pytest.mark.long
def test_a_rank_on_another_host_keeps_the_folder_of_its_run(tmp_path, other_host):
    folder = tmp_path / "shared"
    here = start(folder, VICTIMS / "ranks", "-n", "2", "--", *other_host,
                 VICTIMS / "one_rank_stops_calling")
    wait_for(lambda: len(segments(folder)) == 2)
    kill_with_ranks(here, folder)
    start(folder, "true").communicate(timeout=120)
    assert len(segments(folder)) == 2


def test_a_folder_names_its_owner(tmp_path):
    job = start(tmp_path, "sleep", "1000")
    try:
        owner = wait_for(lambda: [path.read_text() for path in tmp_path.glob("run-*/run.owner")])[0]
        assert owner.splitlines() == [
            "This folder belongs to a `rollcall run`, which removes it.",
            f"host {os.uname().nodename}",
            f"boot {pathlib.Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"]
    finally:
        job.terminate()
        job.wait(timeout=120)


@pytest.mark.parametrize("name", ["run-20261122_101010-1a2b3c4d", "run-4711-5", "run-4711-5-1"])
def test_a_folder_that_no_run_has_made_stays(tmp_path, name):
    mine = tmp_path / name
    (mine / "files").mkdir(parents=True)
    (mine / "files" / "model.pt").write_text("months of work")
    (mine / "1-2.seg").write_text("")
    start(tmp_path, "true").communicate(timeout=120)
    assert (mine / "files" / "model.pt").read_text() == "months of work"
    assert (mine / "1-2.seg").exists()


def test_run_does_not_follow_a_link_to_a_folder(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "1-2.seg").write_text("")
    (elsewhere / "run.owner").write_text(
        "This folder belongs to a `rollcall run`, which removes it.\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "run-4711-5").symlink_to(elsewhere)
    start(folder, "true").communicate(timeout=120)
    assert (elsewhere / "1-2.seg").exists()


@HAS_OWNER
def test_the_next_run_removes_the_folder_of_a_killed_run(tmp_path, has_owner):
    job = start(tmp_path, VICTIMS / "ranks", "-n", "2", "--", VICTIMS / "one_rank_stops_calling")
    wait_for(lambda: len(segments(tmp_path)) == 2)
    ranks = ranks_in(tmp_path)
    job.kill()
    job.wait()
    if not has_owner:
        forget_owner(tmp_path)
    start(tmp_path, "true").communicate(timeout=120)
    assert len(segments(tmp_path)) == 2, "its ranks live on and write there"
    kill_all(ranks)
    new = segments(tmp_path)[0].with_name("1-1.seg")
    new.touch()
    start(tmp_path, "true").communicate(timeout=120)
    assert len(segments(tmp_path)) == 3, "a process may be making its segment"
    os.utime(new, (0, new.stat().st_mtime - 60))
    start(tmp_path, "true").communicate(timeout=120)
    assert list(tmp_path.glob("run-*")) == []


@pytest.mark.long
def test_run_frees_segments_of_restarted_ranks(tmp_path):
    rounds = f"for i in 1 2 3 4 5 6; do {VICTIMS}/ranks -n 4 -- {VICTIMS}/healthy_mix; done"
    again = f"{rounds}; exec sleep 1000"
    job = start(tmp_path, "sh", "-c", again)
    try:
        wait_for(lambda: len(segments(tmp_path)) >= 4)
        wait_for(lambda: segments(tmp_path) == [])
        assert job.poll() is None, "while the run goes on"
    finally:
        job.terminate()
        said = job.communicate(timeout=120)[1]
    assert "nothing to watch" not in said


@pytest.mark.parametrize("name", [
    pytest.param("j" * 64, id="64_bytes", marks=pytest.mark.long),
    pytest.param("j" * 300, id="300_bytes", marks=pytest.mark.long),
    pytest.param("Größe/" + "ü" * 80, id="other_letters"),
    pytest.param("a job\twith: odd 100%", id="blanks", marks=pytest.mark.long)])
def test_no_job_name_changes_the_verdict_or_the_files(run, name):
    result = run("one_rank_reduces_otherwise", hang_after="60s", env={"ROLLCALL_JOB": name})
    assert result.exit_code == 75
    assert "certainty: certain" in result.err
    assert result.verdict["cause"] == "argument_mismatch"


def test_long_paths_change_nothing(tmp_path):
    folder = tmp_path / ("d" * 200) / ("e" * 200)
    folder.mkdir(parents=True)
    job = start(folder, VICTIMS / "ranks", "-n", "4", "--keep-going", "--",
                VICTIMS / "one_rank_reduces_otherwise")
    said = job.communicate(timeout=120)[1]
    assert "certainty: certain" in said, said
