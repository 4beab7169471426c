# SPDX-License-Identifier: Apache-2.0
"""Packages of PyPI that load NCCL, each in its own way, up to the call that needs a GPU.

Each program makes the same calls: the version and a unique id, which need no GPU, then a
communicator, which NCCL refuses where there is none. With Rollcall it prints and fails as without,
and the library has seen the call.
"""

import dataclasses
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import sysconfig

import pytest

pytestmark = pytest.mark.long

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
SITE = pathlib.Path(sysconfig.get_path("purelib"))
NCCL = SITE / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
WRAPPER = SITE / "sglang/srt/distributed/device_communicators/pynccl_wrapper.py"
TORCH_PYTHON = ROOT / "build" / "torch-venv" / "bin" / "python"
REFUSED = "unhandled cuda error (run with NCCL_DEBUG=INFO for details)"


@dataclasses.dataclass
class Package:
    name: str
    program: str
    arguments: tuple = ()
    python: pathlib.Path = pathlib.Path(sys.executable)


PACKAGES = [
    Package("nvidia-nccl-cu12", "nccl_wheel.py", (NCCL,)),
    # Its error ends the program before the interpreter comes to a point where Rollcall may wrap
    # sys.excepthook, so it is read when the interpreter shuts down.
    Package("cupy-cuda12x", "cupy_arrays.py"),
    Package("nccl4py", "nccl4py_core.py"),
    # The wrapper imports torch, for the names of its data types.
    Package("sglang", "sglang_wrapper.py", (WRAPPER, NCCL), TORCH_PYTHON),
]


@pytest.fixture(params=PACKAGES, ids=lambda package: package.name)
def package(request):
    if request.param.name == "sglang":
        if not WRAPPER.exists():
            pytest.skip("SGLang's wheel is for Python 3.11 and newer")
        if not TORCH_PYTHON.exists():
            pytest.skip("SGLang's wrapper imports torch; to have it:  deploy/setup_parts.sh torch")
    return request.param


def run(package, around=(), **environment):
    """-> (exit code, stdout, stderr)"""
    plain = {name: value for name, value in os.environ.items()
             if name != "LD_PRELOAD" and not name.startswith(("NCCL_", "ROLLCALL"))}
    # Also where there is a GPU the last call fails: what a process prints is then the same
    # everywhere, and this is about the way to the call.
    plain["CUDA_VISIBLE_DEVICES"] = ""
    process = subprocess.run(
        [*around, package.python, HERE / "programs" / package.program, *package.arguments],
        env={**plain, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=120)
    return process.returncode, process.stdout, process.stderr


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """facts(segment) -> the lines of segment_facts.cc"""
    program = tmp_path_factory.mktemp("segment_facts") / "segment_facts"
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", f"-I{ROOT}", "-o", program,
                    HERE / "segment_facts.cc"], check=True)
    return lambda segment: subprocess.run([program, segment], check=True, capture_output=True,
                                          text=True).stdout.splitlines()


def test_it_comes_to_the_call_that_needs_a_gpu(package):
    exit_code, printed, error = run(package)
    version = importlib.metadata.version("nvidia-nccl-cu12")
    assert printed == f"NCCL {version}\na unique id of 128 bytes\n", error
    assert exit_code == 1 and REFUSED in error.splitlines()[-1]


def test_preloaded_it_prints_and_fails_the_same_and_the_library_has_seen_it(package, facts,
                                                                            tmp_path):
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)
    without = run(package)
    assert run(package, LD_PRELOAD=str(BUILD / "lib" / "librollcall.so"),
               ROLLCALL_DIR=str(segments)) == without
    (segment,) = segments.iterdir()
    nccl, error, communicator = facts(segment)
    major, minor, patch = map(int, importlib.metadata.version("nvidia-nccl-cu12").split("."))
    assert nccl == f"NCCL {10000 * major + 100 * minor + patch}"
    assert error.startswith(f"error {without[2].splitlines()[-1]} at {package.program}:")
    assert communicator == "communicator of 1, rank 0: failed"


def test_rollcall_run_changes_nothing_and_says_nothing(package, tmp_path):
    reports = tmp_path / "reports"
    assert run(package, [BUILD / "bin" / "rollcall", "run", f"--report-dir={reports}",
                         "--"]) == run(package)
    assert list(reports.glob("*/*")) == []
