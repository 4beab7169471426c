# SPDX-License-Identifier: Apache-2.0
"""The static programs and the library in the userlands of other Debian releases.

    tests/run install tests/install/test_userlands.py       needs root, debootstrap and the network
"""
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

PACKAGES = pathlib.Path(os.environ["ROLLCALL_PACKAGES"])
KEPT = PACKAGES.parent / "userlands"
# Whether the simulated NCCL runs there: it needs glibc 2.34.
RELEASES = {"bullseye": False, "bookworm": True, "trixie": True}

pytestmark = pytest.mark.long


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600,
                          **options)


@pytest.fixture(params=RELEASES)
def userland(request):
    """(release, run a shell command in it as its own root)"""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("a userland needs root and debootstrap; to have it:  apt-get install debootstrap")
    folder = KEPT / request.param
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        KEPT.mkdir(exist_ok=True)
        made = run("debootstrap", "--variant=minbase", "--include=python3,libstdc++6", request.param, folder)
        if made.returncode != 0:
            pytest.skip(f"cannot make the userland of {request.param}: {made.stdout[-300:]}")
        (folder / "made").touch()
    shutil.rmtree(folder / "opt" / "rollcall", ignore_errors=True)
    archive, = PACKAGES.glob(f"*-{os.uname().machine}.tgz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "opt")
    next((folder / "opt").glob("rollcall-*")).rename(folder / "opt" / "rollcall")

    def inside(command):
        script = (f"mount -t proc proc {folder}/proc && mount -t tmpfs tmpfs {folder}/dev/shm && "
                  f"exec chroot {folder} env PATH=/opt/rollcall/bin:/usr/bin:/bin sh -c '{command}'")
        return run("unshare", "--mount", "--pid", "--fork", "sh", "-c", script)

    (folder / "dev" / "shm").mkdir(exist_ok=True)
    return request.param, inside


def test_the_programs_run_and_the_library_loads(userland):
    _, inside = userland
    for program in ("rollcall", "rollcalld", "rollcall-agent"):
        result = inside(f"{program} --version")
        assert result.returncode == 0 and "0.1.0" in result.stdout, result.stderr
    result = inside("cd /tmp && rollcall run --http=none -- python3 -c \"import os; os._exit(7)\"")
    assert result.returncode == 7, result.stderr
    assert "the job loaded the library" in result.stderr


def test_the_demo_shows_its_verdict_or_says_what_it_needs(userland):
    release, inside = userland
    result = inside("cd /tmp && rollcall demo")
    if RELEASES[release]:
        assert result.returncode == 0, result.stderr
        assert "rank 3" in result.stderr and "`validate`" in result.stderr
    else:
        assert result.returncode == 1 and "needs glibc 2.34" in result.stderr, result.stderr
