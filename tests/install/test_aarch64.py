# SPDX-License-Identifier: Apache-2.0
"""The packages for aarch64 on a machine of another processor: what they hold, and that it runs under qemu's
user-mode emulation. That has no ptrace, so stacks from outside stay untried here.

`-p 65536` is the page size of some kernels for Grace."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import time

import pytest

pytestmark = pytest.mark.long

PACKAGES = pathlib.Path(os.environ["ROLLCALL_PACKAGES"])
SYSROOT = PACKAGES.parent / "arm64"
QEMU = "qemu-aarch64"
PYTHON = SYSROOT / "usr" / "bin" / "python3"
PROGRAMS = ("rollcall", "rollcall-agent", "rollcalld", "rollcall-probe")
PAGE_SIZES = (4096, 65536)
# A table of formats of its own: the kernel then starts programs for aarch64 by qemu, below this process alone.
REGISTER = r"""mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' ':aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff"""\
    r"""\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64:PF' \
  > /proc/sys/fs/binfmt_misc/register
exec "$@"
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                          **options)


def one(pattern):
    found, = PACKAGES.glob(pattern)
    return found


@pytest.fixture(scope="module", autouse=True)
def packages():
    if os.uname().machine == "aarch64":
        pytest.skip("the other tests run the packages of this machine's own processor")
    if not list(PACKAGES.glob("*aarch64*")):
        pytest.skip("there are no packages for aarch64; to have them:  tests/run aarch64")
    if shutil.which(QEMU) is None:
        pytest.skip(f"there is no {QEMU}; to have it:  apt-get install qemu-user")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tgz")
    with tarfile.open(one("*-aarch64.tgz")) as archive:
        archive.extractall(folder)
    found, = folder.iterdir()
    return found


def test_each_kind_of_package_is_there_and_says_its_processor():
    assert one("rollcall-*-manylinux2014_aarch64.whl")
    for package in ("rollcall", "rollcall-agent", "rollcalld"):
        deb = one(f"{package}_*_arm64.deb")
        assert run("dpkg-deb", "--field", deb, "Architecture").stdout == "arm64\n"
        rpm = one(f"{package}-0*.aarch64.rpm")
        if shutil.which("rpm"):
            assert run("rpm", "--query", "--package", "--queryformat", "%{ARCH}", rpm).stdout == "aarch64"
    with tarfile.open(one("rollcall-image-*-arm64.oci.tar")) as archive:

        def blob(descriptor):
            return json.load(archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")))

        manifest, = json.load(archive.extractfile("index.json"))["manifests"]
        assert blob(blob(manifest)["config"])["architecture"] == "arm64"
    assert one("rollcall-image-*-arm64.docker.tar.gz")


def test_the_files_are_those_of_the_other_processors_packages(unpacked):
    def names(path):
        with tarfile.open(path) as archive:
            return {entry.name.split("/", 1)[-1] for entry in archive if entry.isfile()}

    assert names(one("*-aarch64.tgz")) == names(one("*-x86_64.tgz"))
    for file in unpacked.rglob("*"):
        if file.is_file() and file.read_bytes()[:4] == b"\x7fELF":
            assert "AArch64" in run("readelf", "-h", file).stdout, file


def test_programs_are_static_and_the_library_needs_glibc_2_17_alone(unpacked):
    for program in PROGRAMS:
        headers = run("readelf", "-dl", unpacked / "bin" / program).stdout
        assert "NEEDED" not in headers and "INTERP" not in headers, program
    library = unpacked / "lib" / "rollcall" / "librollcall.so"
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", library).stdout)
    assert set(needed) <= {"libc.so.6", "libdl.so.2"}
    versions = re.findall(r"GLIBC_2\.(\d+)", run("readelf", "-W", "--dyn-syms", library).stdout)
    assert max(map(int, versions)) == 17


def test_each_loads_with_pages_of_64_kib(unpacked):
    for file in [*(unpacked / "bin" / program for program in PROGRAMS),
                 unpacked / "lib" / "rollcall" / "librollcall.so"]:
        loads = re.findall(r"^ +LOAD.* (0x[0-9a-f]+)$", run("readelf", "-lW", file).stdout, re.MULTILINE)
        assert loads and all(int(alignment, 16) >= 65536 for alignment in loads), file


@pytest.mark.parametrize("page", PAGE_SIZES)
def test_each_program_runs(unpacked, page):
    for program in ("rollcall", "rollcall-agent", "rollcalld"):
        result = run(QEMU, "-p", page, unpacked / "bin" / program, "--version")
        assert result.returncode == 0 and "0.1.0" in result.stdout, result.stderr


@pytest.mark.parametrize("page", PAGE_SIZES)
def test_daemon_agent_and_command_line_speak(unpacked, tmp_path, page):
    if os.geteuid() != 0:
        pytest.skip("a network of its own needs root")
    ask = ("import time, urllib.request, sys\nend = time.monotonic() + 90\nwhile True:\n"
           "    try:\n        page = urllib.request.urlopen('http://127.0.0.1:7656/metrics').read().decode()\n"
           "        if '\\nrollcall_agents_connected 1\\n' in page: sys.exit(0)\n"
           "    except OSError as error:\n        page = str(error)\n"
           "    if time.monotonic() > end: sys.exit(page[:2000])\n    time.sleep(0.3)\n")
    bin_folder = f"{QEMU} -p {page} {unpacked}/bin"
    # --insecure: qemu does not pass on the question to the kernel whose connection it is.
    script = f"""ip link set lo up; cd {tmp_path}
{bin_folder}/rollcalld --insecure --http=127.0.0.1:7656 > daemon.log 2>&1 &
{bin_folder}/rollcall-agent --dir={tmp_path}/shm --daemon=127.0.0.1:7655 > agent.log 2>&1 &
/usr/bin/python3 -c "$0" || {{ cat *.log >&2; exit 1; }}
exec {bin_folder}/rollcall status --daemon=127.0.0.1:7655"""
    (tmp_path / "shm").mkdir(mode=0o700)
    result = run("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-ec", script, ask)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", PAGE_SIZES)
def test_a_program_loads_the_library(unpacked, page):
    library = unpacked / "lib" / "rollcall" / "librollcall.so"
    script = "import ctypes, platform; print(platform.machine(), hasattr(ctypes.CDLL(None), 'rollcall_set_step'))"
    result = run(QEMU, "-p", page, "-L", SYSROOT, "-E", f"LD_PRELOAD={library}", PYTHON, "-c", script)
    assert (result.stdout, result.stderr) == ("aarch64 True\n", "")


# With pages of 4 KiB only: qemu's of 64 KiB cannot map a shared file that ends within a page, as segments do.
def test_this_machines_own_rollcall_names_the_hang_from_the_segments_of_the_other_processor(unpacked, tmp_path):
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)
    library = unpacked / "lib" / "rollcall"
    ranks = []
    try:
        for rank in range(4):
            command = [QEMU, "-L", SYSROOT, "-E", f"LD_PRELOAD={library}/librollcall.so",
                       "-E", f"LD_LIBRARY_PATH={library}/sim", PYTHON, library / "demo" / "train.py"]
            ranks.append(subprocess.Popen(
                [str(word) for word in command], stdout=subprocess.DEVNULL, stderr=open(tmp_path / "errors", "a"),
                env={**os.environ, "DEMO_ID_FILE": str(tmp_path / "id"), "DEMO_RANK": str(rank), "RANK": str(rank),
                     "WORLD_SIZE": "4", "LOCAL_RANK": str(rank), "ROLLCALL_DIR": str(segments),
                     "ROLLCALL_JOB": "demo"}))
        end = time.monotonic() + 60
        while True:
            told = run(PACKAGES / "tree" / "usr" / "bin" / "rollcall", "analyze", segments)
            sentence = " ".join(told.stdout.split())
            if re.search(r"rank 3 .*has not called AllReduce #6", sentence):
                break
            assert time.monotonic() < end, told.stdout + told.stderr + (tmp_path / "errors").read_text()
            time.sleep(0.5)
    finally:
        for process in ranks:
            process.kill()
            process.wait()


def test_the_demo_names_the_rank_that_hangs(unpacked, tmp_path):
    probe = run("unshare", "--user", "--map-root-user", "--mount", "bash", "-ec", REGISTER, "bash", "true")
    if probe.returncode != 0:
        pytest.skip("this kernel has one table of program formats for all (before 6.7), or no user namespaces: "
                    f"{probe.stderr.strip()}")
    python = tmp_path / "bin"
    python.mkdir()
    (python / "python3").symlink_to(PYTHON)
    result = run("unshare", "--user", "--map-root-user", "--mount", "bash", "-ec", REGISTER, "bash",
                 unpacked / "bin" / "rollcall", "demo", cwd=tmp_path,
                 env={"PATH": f"{python}:/usr/bin:/bin", "HOME": str(tmp_path), "QEMU_LD_PREFIX": str(SYSROOT)})
    assert result.returncode == 0, result.stdout + result.stderr
    report, = (tmp_path / "rollcall-reports").iterdir()
    incident = json.loads((report / "incident.json").read_text())
    verdict = incident["verdicts"][0]
    assert (verdict["cause"], [culprit["rank"] for culprit in verdict["culprits"]]) == ("missing_rank", [3])


def test_the_image_holds_the_programs_of_the_tgz(unpacked):
    with tarfile.open(one("rollcall-image-*-arm64.oci.tar")) as archive:
        names = [entry.name for entry in archive if entry.size > 1_000_000]
        layer = max(names, key=lambda name: archive.getmember(name).size)
        with tarfile.open(fileobj=archive.extractfile(layer)) as files:
            data = files.extractfile("usr/bin/rollcalld").read()
    expected = (unpacked / "bin" / "rollcalld").read_bytes()
    assert hashlib.sha256(data).digest() == hashlib.sha256(expected).digest()
