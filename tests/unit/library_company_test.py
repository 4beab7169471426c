"""librollcall.so among what else is preloaded, and in programs that it is not meant for."""
import ctypes.util
import os
import pathlib
import resource
import shutil
import subprocess

import pytest

LIBRARY = os.environ["ROLLCALL_LIBRARY"]
STUBS = os.environ["ROLLCALL_STUB_DIR"]
STEPS = [os.environ["LIBRARY_STEPS"], "id", "init=2,0", "all_reduce", "all_reduce"]


@pytest.fixture
def go(tmp_path):
    """go(command, preloads, ...) -> (exit code, stderr, number of segments)."""
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)

    def run(command, preloads=(LIBRARY,), environment=None, limits=None):
        def limit():
            for what, value in (limits or {}).items():
                resource.setrlimit(what, (value, value))

        process = subprocess.run(
            command, capture_output=True, text=True, timeout=60, preexec_fn=limit,
            env={"LD_PRELOAD": ":".join(preloads), "LD_LIBRARY_PATH": STUBS,
                 "ROLLCALL_DIR": str(segments), "PATH": os.environ["PATH"],
                 **(environment or {})})
        return process.returncode, process.stderr, len(list(segments.iterdir()))

    return run


def allocator(name):
    found = ctypes.util.find_library(name)
    if found is None:
        pytest.skip(f"lib{name} is not installed")
    return found


def sanitizer():
    path = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True,
                          check=True).stdout.strip()
    if not os.path.isabs(path):
        pytest.skip("the compiler came without libasan")
    # The file may be a script for the linker.
    return str(next(pathlib.Path(path).parent.glob("libasan.so*")))


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc_minimal"])
@pytest.mark.parametrize("first", [True, False])
def test_works_beside_another_allocator(go, name, first):
    preloads = [LIBRARY, allocator(name)] if first else [allocator(name), LIBRARY]
    assert go(STEPS, preloads) == (0, "", 1)


def test_works_behind_a_sanitizer(go):
    assert go(STEPS, [sanitizer(), LIBRARY], {"ASAN_OPTIONS": "detect_leaks=0"}) == (0, "", 1)


def test_works_where_everything_is_bound_at_once(go):
    assert go(STEPS, environment={"LD_BIND_NOW": "1"}) == (0, "", 1)


@pytest.mark.parametrize("limits, steps",
                         [({resource.RLIMIT_NOFILE: 64}, ["use_up_descriptors"]),
                          ({resource.RLIMIT_AS: 40 << 20}, [])],
                         ids=["no_descriptor", "no_address_space"])
def test_without_room_the_job_runs_and_one_line_says_so(go, limits, steps):
    exit_code, said, segments = go([STEPS[0], *steps, *STEPS[1:]], limits=limits)
    assert exit_code == 0 and segments == 0
    assert said.count("\n") == 1 and "not recording, training unaffected" in said


PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
  void* puts_address = dlsym(RTLD_DEFAULT, "puts");
  void* missing = dlsym(RTLD_DEFAULT, "no_such_function");
  return puts_address != 0 && missing == 0 && dlerror() != 0 ? 7 : 1;
}
"""


def compiled(tmp_path, compiler, source, *flags):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "program.c").write_text(source)
    subprocess.run([compiler, "-o", tmp_path / "program", tmp_path / "program.c", *flags],
                   check=True)
    return tmp_path / "program"


def test_a_program_of_another_c_library_is_left_alone(go, tmp_path):
    program = compiled(tmp_path, "musl-gcc", PROGRAM)
    assert go([program]) == (7, "", 0)


def test_a_static_program_is_left_alone(go, tmp_path):
    program = compiled(tmp_path, "cc", "int main(void) { return 7; }", "-static-pie")
    assert go([program]) == (7, "", 0)
