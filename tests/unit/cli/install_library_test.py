# SPDX-License-Identifier: Apache-2.0
"""`rollcall install-library`: the preloaded library, into a folder of an init container."""
import pathlib
import subprocess

from command_line import LIBRARY, ROLLCALL, rollcall


def test_the_library_is_put_into_a_folder_that_all_may_read(tmp_path):
    folder = tmp_path / "a" / "b"
    result = rollcall("install-library", folder, umask=0o077)
    assert (result.returncode, result.stdout) == (0, f"{folder}/librollcall.so\n"), result.stderr
    installed, = folder.iterdir()
    assert installed.read_bytes() == pathlib.Path(LIBRARY).read_bytes()
    assert installed.stat().st_mode & 0o777 == 0o755


def test_a_process_keeps_the_library_that_another_replaces(tmp_path):
    target = tmp_path / "librollcall.so"
    target.write_text("the library of the release before")
    with open(target) as in_use:
        assert rollcall("install-library", tmp_path).returncode == 0
        assert in_use.read() == "the library of the release before"
    assert target.read_bytes() == pathlib.Path(LIBRARY).read_bytes()


def test_a_folder_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    result = rollcall("install-library", in_the_way)
    assert result.returncode == 1
    assert f"cannot make {in_the_way}: Not a directory" in result.stderr
    (tmp_path / "folder" / "librollcall.so").mkdir(parents=True)
    assert rollcall("install-library", tmp_path / "folder").returncode == 1
    assert [file.name for file in (tmp_path / "folder").iterdir()] == ["librollcall.so"]


def install_for_pod(folder, **environment):
    return subprocess.run([ROLLCALL, "install-library", "--pod", folder], capture_output=True, text=True,
                          timeout=120, check=False, env={**environment, "RANK": "3", "SECRET": "x"})


def test_for_a_pod_the_loaders_file_and_the_pods_variables_come_with_the_library(tmp_path):
    result = install_for_pod(tmp_path, ROLLCALL_JOB="train", POD_NAME="train-0", NODE_NAME="a\nRANK=1")
    library = f"{tmp_path}/librollcall.so"
    assert (result.returncode, result.stdout) == (0, f"{library}\n"), result.stderr
    assert (tmp_path / "ld.so.preload").read_text() == f"{library}\n"
    assert sorted((tmp_path / "environment").read_text().splitlines()) == [
        "POD_NAME=train-0", "ROLLCALL_JOB=train", f"ROLLCALL_PRELOAD={library}"]
    assert all(file.stat().st_mode & 0o444 == 0o444 for file in tmp_path.iterdir()), "all users read them"


def test_links_in_the_folder_of_a_pod_are_replaced_and_not_followed(tmp_path):
    other, folder = tmp_path / "other", tmp_path / "folder"
    other.write_text("of somebody else")
    folder.mkdir()
    for name in ("ld.so.preload", "environment"):
        (folder / name).symlink_to(other)
    assert install_for_pod(folder, ROLLCALL_JOB="train").returncode == 0
    assert other.read_text() == "of somebody else"
    assert (folder / "ld.so.preload").read_text() == f"{folder}/librollcall.so\n"
    assert not any(file.is_symlink() for file in folder.iterdir())


def test_a_pod_starts_although_the_library_cannot_be_installed(tmp_path):
    (tmp_path / "librollcall.so").mkdir()
    result = install_for_pod(tmp_path, ROLLCALL_JOB="train")
    assert result.returncode == 0
    assert f"cannot replace {tmp_path}/librollcall.so: Is a directory" in result.stderr
    assert (tmp_path / "ld.so.preload").read_text() == "", "the loader loads nothing"
    assert not (tmp_path / "environment").exists()
    assert install_for_pod("/proc/none").returncode == 0
