# SPDX-License-Identifier: Apache-2.0
"""Odd programs behave alike with and without librollcall.so: rare uses of the kernel, other allocators, other
languages and run times.

The rules are those of tests/unit/interpose/library_hostile_test.py, whose programs the gate runs: among them
seccomp (strict and by filters), RLIMIT_*, daemons, spawned and forked children, closed descriptors, signal stacks,
NCCL that is loaded and unloaded. This part has what needs Debian's packages, and more of the kernel. .NET is
Mono: Debian has no package of Microsoft's.
"""
import ctypes.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"]).resolve()
ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(__file__).with_name("programs")


def header_folder(name):
    return re.search(rf"^{name}:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M).group(1)


os.environ.setdefault("ROLLCALL_LIBRARY", str(BUILD / "lib" / "librollcall.so"))
os.environ.setdefault("ROLLCALL_STUB_DIR", str(BUILD / "stubs"))
for variable in ("NCCL_INCLUDE_DIR", "CUDA_INCLUDE_DIR"):
    os.environ.setdefault(variable, header_folder(variable))
sys.path.insert(0, str(ROOT / "tests" / "unit" / "interpose"))
from library_hostile_test import INCLUDES, LIBRARY, SOURCES, Row, check, for_all, nccl, open_folder, own_shared_memory  # noqa: E402

__all__ = ["nccl", "open_folder"]  # fixtures: the folder of a stub of NCCL; folders for all users
SETPRIV = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def own_mounts(command):
    """A command that changes the mounts of the program before its start."""
    return ("unshare", "--mount", "sh", "-c", f'{command} && exec "$@"', "sh")


KERNEL = [
    Row("clone3_alone", "a child by clone3"),
    Row("clone3_with_a_user", "a child by clone3 in another user namespace"),
    Row("clone3_with_all", "a child by clone3 in namespaces of its own"),
    Row("uses_io_uring", "reads by io_uring"),
    Row("forks_a_tree", "63 processes"),
    Row("closes_a_range", "closes all descriptors from 3 on"),
    Row("runs_with_an_empty_environment", "becomes a program without LD_PRELOAD"),
    Row("vforks_and_exits", "a child of vfork ends by exit()"),
    Row("vforks_and_execs", "children of vfork become others"),
    Row("changes_its_user", "becomes nobody after its start", root=True),
    Row("works", "without /proc", segment=None, says=True, root=True,
        command=own_mounts("umount -l /proc")),
    Row("works", "without /dev/shm", segment=False, says=True, folder=lambda folder: "", root=True,
        command=own_mounts("umount -l /dev/shm && mount -t tmpfs -o ro none /dev/shm")),
    Row("works", "with a small /dev/shm", segment=None, says=True, folder=lambda folder: "", root=True,
        command=own_shared_memory("1m")),
    Row("works", "as nobody", folder=for_all, segment=False, says=True, root=True, command=SETPRIV),
    Row("works", "four descriptors", segment=False, says=True, command=("prlimit", "--nofile=4")),
    Row("works", "300 MB of addresses", segment=False, says=True, command=("prlimit", "--as=300000000")),
    Row("works", "no file may grow", segment=False, says=True, command=("prlimit", "--fsize=0")),
    Row("works", "one process", command=("prlimit", "--nproc=1")),
    Row("works", "64 KiB of stack", command=("prlimit", "--stack=65536")),
    Row("works", "in a session of its own", command=("setsid", "--wait")),
    Row("works", "with addresses at random places switched off", command=("setarch", "-R")),
    Row("works", "all signals ignored", command=("env", "--ignore-signal")),
]
ALLOCATORS = ["jemalloc", "tcmalloc_minimal"]


def tool(name, package):
    """The path of a program that this part needs. A part without it has not run."""
    found = shutil.which(name)
    assert found, f"found no {name}, of Debian's package {package}:  tests/run --set-up odd"
    return found


@pytest.fixture(scope="session")
def build(nccl, open_folder):
    """build(out, command...) -> the path of a program, made once."""
    folder = open_folder("odd")
    (folder / "libnccl.so").symlink_to(nccl / "libnccl.so.2")
    environment = {**os.environ, "GOCACHE": str(folder / "go"), "GO111MODULE": "off", "GOFLAGS": "",
                   "CGO_CFLAGS": " ".join(INCLUDES), "CGO_LDFLAGS": f"-L{nccl}"}

    def run(out, *command):
        path = folder / out
        if not path.exists():
            subprocess.run([word.replace("OUT", str(path)).replace("LIBRARIES", str(folder))
                            for word in map(str, command)], check=True, env=environment, cwd=folder)
        return path

    return run


@pytest.fixture(scope="session")
def odd(build, nccl):
    return build("odd", tool("cc", "gcc"), "-Wall", "-Wno-format-truncation", "-g", "-o", "OUT",
                 PROGRAMS / "odd.c", f"-I{SOURCES}", *INCLUDES, f"-L{nccl}", "-l:libnccl.so.2")


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row.name}: {row.does}") for row in KERNEL])
def test_a_rare_use_of_the_kernel(odd, nccl, row):
    if row.root and os.geteuid() != 0:
        pytest.skip("only root can do this")
    check(row, [odd], nccl)


@pytest.mark.parametrize("name", ALLOCATORS)
@pytest.mark.parametrize("first", [True, False], ids=["library_first", "allocator_first"])
@pytest.mark.parametrize("program", ["works", "forks_a_tree", "vforks_and_execs"])
def test_another_allocator(odd, nccl, name, first, program):
    found = ctypes.util.find_library(name)
    assert found, f"found no lib{name}:  tests/run --set-up odd"
    check(Row(program, ""), [odd], nccl, company=(found,), library_first=first)


def test_a_static_program(build, nccl):
    program = build("static", tool("cc", "gcc"), "-static", "-o", "OUT", PROGRAMS / "alone.c")
    check(Row("", "", segment=False), [program], nccl)


def test_a_program_with_the_rights_of_its_owner(build, nccl):
    if os.geteuid() != 0:
        pytest.skip("only root can give such rights")
    program = build("setuid", tool("cc", "gcc"), "-o", "OUT", PROGRAMS / "alone.c")
    os.chmod(program, 0o4755)
    check(Row("", "", segment=False, command=SETPRIV), [program], nccl)


def test_whoever_starts_a_program_with_other_rights_does_not_choose_where_it_writes(build, nccl, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give such rights")
    program = build("setuid_works", tool("cc", "gcc"), "-Wall", "-Wno-format-truncation", "-o", "OUT",
                    PROGRAMS / "odd.c", f"-I{SOURCES}", *INCLUDES, f"-L{nccl}", f"-Wl,-rpath,{nccl}",
                    "-l:libnccl.so.2")
    os.chmod(program, 0o4755)
    shutil.copytree("/etc", tmp_path / "etc", symlinks=True)
    (tmp_path / "etc" / "ld.so.preload").write_text(LIBRARY)
    (tmp_path / "of_root").mkdir()
    own = 'mount --bind "$0" /etc && mount -t tmpfs none /dev/shm && "$@"; code=$?; ls -R /dev/shm; exit $code'
    done = subprocess.run(["unshare", "--mount", "sh", "-c", own, tmp_path / "etc", *SETPRIV, "env",
                           f"ROLLCALL_DIR={tmp_path / 'of_root'}", program, "works"],
                          capture_output=True, text=True)
    assert (done.returncode, os.listdir(tmp_path / "of_root")) == (7, []), done.stderr
    assert "rollcall-0" in done.stdout and ".seg" in done.stdout  # in the folder of its owner


def test_go(build, nccl):
    program = build("odd_go", tool("go", "golang-go"), "build", "-o", "OUT", PROGRAMS / "odd.go")
    check(Row("", "", slow=True), [program], nccl)


def test_rust(build, nccl):
    program = build("odd_rs", tool("rustc", "rustc"), "-L", "LIBRARIES", "-o", "OUT", PROGRAMS / "odd.rs")
    check(Row("", "", slow=True), [program], nccl)


def test_java(build, nccl):
    compiler = pathlib.Path(tool("javac", "default-jdk-headless"))
    headers = compiler.resolve().parents[1] / "include"
    native = build("libodd.so", tool("cc", "gcc"), "-shared", "-fPIC", "-o", "OUT", PROGRAMS / "odd_jni.c",
                   *INCLUDES, f"-I{headers}", f"-I{headers}/linux", f"-L{nccl}", "-l:libnccl.so.2")
    classes = build("classes", compiler, "-d", "OUT", PROGRAMS / "Odd.java")
    java = tool("java", "default-jdk-headless")
    check(Row("", "", slow=True), [java, "-cp", classes, "Odd", native], nccl)


def test_dotnet(build, nccl):
    program = build("odd.exe", tool("mcs", "mono-mcs"), "-out:OUT", PROGRAMS / "Odd.cs")
    mono = (tool("env", "coreutils"), f"LD_LIBRARY_PATH={nccl}", tool("mono", "mono-runtime"))
    check(Row("", "", slow=True), [*mono, program], nccl)


def test_node(nccl):
    check(Row("", "", slow=True, segment=False), [tool("node", "nodejs"), PROGRAMS / "odd.js"], nccl)


def test_a_program_without_nccl_has_the_library():
    """Otherwise all of them would behave alike."""
    maps = subprocess.run([tool("cat", "coreutils"), "/proc/self/maps"], capture_output=True, text=True,
                          env={"LD_PRELOAD": LIBRARY}, check=True).stdout
    assert "librollcall.so" in maps
