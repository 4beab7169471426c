# SPDX-License-Identifier: Apache-2.0
"""The same sources give the same bytes in another folder.

    tests/run install -k reproducible                                   the library and a program: minutes
    ROLLCALL_INSTALL_TWO_FOLDERS=1 tests/run install -k reproducible    all packages: a whole build more
    ROLLCALL_INSTALL_TWO_FOLDERS='--arch=x86_64 wheel tgz' ...             these arguments of deploy/package.sh
"""
import os
import pathlib
import shutil
import subprocess

import pytest

PACKAGES = pathlib.Path(os.environ["ROLLCALL_PACKAGES"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
# What does not depend on gRPC compiles fast.
TARGETS = {"rollcall_library": "lib/rollcall/librollcall.so", "rollcall-probe": "bin/rollcall-probe"}


def run(*command, **options):
    environment = {**os.environ, "CCACHE_DISABLE": "1"}  # it would return the objects of the other folder
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            env=environment, **options)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result.stdout


@pytest.fixture
def copy(tmp_path):
    """The sources in another folder, with what the set-up fetched, and with the name of the commit."""
    folder = tmp_path / "another" / "folder"
    names = run("git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, names):
        if (SOURCE / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / name, folder / name)
    (folder / "service" / "commit.txt").write_text(run("git", "-C", SOURCE, "rev-parse", "HEAD"))
    for fetched in ("headers", "sources", "arm64"):
        if (SOURCE / "build" / fetched).exists():
            shutil.copytree(SOURCE / "build" / fetched, folder / "build" / fetched, symlinks=True)
    return folder


@pytest.mark.long
def test_another_folder_gives_the_same_library_and_probe(copy):
    run("cmake", "--preset", "portable", cwd=copy)
    run("cmake", "--build", "--preset", "portable", "--target", *TARGETS, cwd=copy)
    for file in TARGETS.values():
        name = pathlib.Path(file).name
        built, = (found for found in (copy / "build" / "portable").rglob(name) if found.is_file())
        run("strip", built)
        assert built.read_bytes() == (PACKAGES / "tree" / "usr" / file).read_bytes(), name


def sums_of(folder):
    return dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())


@pytest.mark.long
@pytest.mark.skipif(not os.environ.get("ROLLCALL_INSTALL_TWO_FOLDERS"),
                    reason="a whole build more: ROLLCALL_INSTALL_TWO_FOLDERS=1 runs it")
def test_another_folder_gives_the_same_packages(copy):
    changed = run("git", "-C", SOURCE, "status", "--porcelain", "--untracked-files=no")
    assert changed == "", "the packages name a commit: commit the changes first"
    moment = run("git", "-C", SOURCE, "log", "-1", "--format=%ct").strip()
    chosen = os.environ["ROLLCALL_INSTALL_TWO_FOLDERS"]
    arguments = [] if chosen == "1" else chosen.split()
    run("env", f"SOURCE_DATE_EPOCH={moment}", "deploy/package.sh", *arguments, cwd=copy)
    made, known = sums_of(copy / "build" / "package"), sums_of(PACKAGES)
    assert made
    if arguments:
        known = {name: digest for name, digest in known.items() if name in made}
    assert made == known
