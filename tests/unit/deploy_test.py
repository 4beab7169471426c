# SPDX-License-Identifier: Apache-2.0
"""The scripts that set tests up and run them: deploy/setup_parts.sh, tests/run, deploy/test.sh."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Fetches the package that the fixture made.
APT_GET = """#!/bin/sh
[ "$1 $2 $3" = "download -qq prometheus" ] && cp "{package}" .
"""
# In the place of tests/run: a part is a file of shell below parts/, or one test that passes.
RUN = """#!/bin/bash
if [ "$1" = --set-up ]; then
  [ ! -e "parts/set-up-$2" ] || . "parts/set-up-$2"
  exit
fi
shift; xml=/dev/null
for argument in "$@"; do
  case $argument in --junitxml=*) xml=${argument#*=} ;; /*) xml=$argument ;; esac
done
echo '<testsuite><testcase classname="tests" name="passes"/></testsuite>' > "$xml"
[ ! -e "parts/$1" ] || . "parts/$1"
"""
FAILS = """echo '<testsuite><testcase classname="tests" name="breaks"><failure/></testcase></testsuite>' > "$xml"
exit 1
"""


def run(*command, cwd=ROOT, path=""):
    """(exit code, all that it says)"""
    done = subprocess.run(command, cwd=cwd, env={**os.environ, "PATH": f"{path}{os.environ['PATH']}"}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return done.returncode, done.stdout


def copy_scripts(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the script, and an apt-get whose prometheus is /bin/true with 64 MiB of padding."""
    copy_scripts(tmp_path, "deploy/common.sh", "deploy/setup_parts.sh")
    (tmp_path / "package" / "DEBIAN").mkdir(parents=True)
    (tmp_path / "package" / "DEBIAN" / "control").write_text(
        "Package: prometheus\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: for a test\n")
    programs = tmp_path / "package" / "usr" / "bin"
    programs.mkdir(parents=True)
    (programs / "promtool").write_bytes(pathlib.Path("/bin/true").read_bytes() + bytes(64 << 20))
    (programs / "promtool").chmod(0o755)
    package = tmp_path / "prometheus_1_all.deb"
    subprocess.run(["dpkg-deb", "-Zgzip", "--build", tmp_path / "package", package], check=True,
                   stdout=subprocess.DEVNULL)
    write_program(tmp_path / "bin" / "apt-get", APT_GET.format(package=package))
    return tmp_path


def start(checkout):
    """Sets Prometheus up, then uses it at once, as a test does."""
    return subprocess.Popen(
        ["bash", "-c", "deploy/setup_parts.sh prometheus && build/prometheus/usr/bin/promtool --version"], cwd=checkout,
        env={"PATH": f"{checkout / 'bin'}:/usr/bin:/bin"}, stderr=subprocess.PIPE, text=True)


def test_each_of_several_that_set_prometheus_up_at_once_finds_whole_programs(checkout):
    for _ in range(3):
        shutil.rmtree(checkout / "build", ignore_errors=True)
        errors = [process.communicate(timeout=120)[1] for process in [start(checkout) for _ in range(6)]]
        assert errors == [""] * 6


@pytest.mark.parametrize("command", [
    ["deploy/setup_parts.sh", "browsers"], ["tests/run", "browsers"], ["tests/run", "PART"],
    ["deploy/test.sh", "--only=browsers"], ["deploy/test.sh", "--without=browsers"],
    ["deploy/test.sh", "--only=frameworks"],  # of another set
], ids=" ".join)
def test_an_unknown_part_is_refused_with_the_way_to_the_list(command):
    code, said = run(*command)
    assert code == 1 and "there is no part" in said and f"{command[0]} --help" in said


def parts_of(script):
    _, said = run(script, "--help")
    return re.findall(r"^  ([a-z0-9-]+) {2,}\S", said, re.MULTILINE)


def test_each_part_of_the_set_up_has_its_function():
    functions = set(re.findall(r"^setup_(\w+)\(\)", (ROOT / "deploy/setup_parts.sh").read_text(), re.MULTILINE))
    assert set(parts_of("deploy/setup_parts.sh")) == functions


def test_each_part_of_a_set_is_one_of_tests_run_or_a_script():
    parts = parts_of("tests/run")
    assert len(parts) == len(set(parts)) > 10
    rows = re.findall(r"^(?:quick|gate|all) +\|(.*)", (ROOT / "deploy/test.sh").read_text(), re.MULTILINE)
    runs = {row.split("|")[2].strip() for row in rows}
    assert {name for name in runs if "/" not in name} <= set(parts)


@pytest.fixture
def gate(tmp_path):
    """gate(*arguments, browser="a line of shell") -> (exit code, lines): deploy/test.sh of a checkout in which
    everything is built, and parts are what the arguments say."""
    copy_scripts(tmp_path, "deploy/common.sh", "deploy/test.sh")
    write_program(tmp_path / "tests" / "run", RUN)
    for name in ("deploy/setup.sh", "deploy/lint.sh", "bin/cmake"):
        write_program(tmp_path / name, "#!/bin/sh\n")

    def go(*arguments, **parts):
        for name, text in parts.items():
            write_program(tmp_path / "parts" / name, text)
        code, said = run("deploy/test.sh", *arguments, cwd=tmp_path, path=f"{tmp_path}/bin:")
        return code, said.splitlines()

    return go


def parts_in(name):
    return re.findall(rf"^{name} +\|[ 0-9]+\| (\S+)", (ROOT / "deploy/test.sh").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name, flags", [("gate", []), ("quick", ["--quick"]), ("all", ["--all"])])
def test_a_set_runs_each_of_its_parts(gate, name, flags):
    code, lines = gate(*flags)
    assert code == 0 and lines[-1] == f"{len(parts_in(name))} passed, 0 failed"
    ran = re.findall(r"^   (\S+): 1 passed, 0 failed", "\n".join(lines), re.MULTILINE)
    assert sorted(ran) == sorted(parts_in(name))


def test_what_cannot_be_set_up_fails_and_the_other_parts_run(gate):
    code, lines = gate(**{"set-up-browser": "echo no chromium here; exit 1"})
    assert code == 1 and lines[-1] == f"{len(parts_in('gate')) - 1} passed, 1 failed"
    assert "   FAILED: browser: cannot be set up; to leave it out:  --without=browser" in lines
    assert "no chromium here" in lines


def test_what_is_left_out_is_said_at_the_end(gate):
    code, lines = gate("--without=browser", "--without=slurm")
    assert code == 0 and lines[-1] == f"{len(parts_in('gate')) - 2} passed, 0 failed"
    assert lines[-3:-1] == ["   LEFT OUT by --without: browser", "   LEFT OUT by --without: slurm"]


def test_a_failed_test_is_named_and_its_output_printed(gate):
    code, lines = gate("--only=e2e", "--only=torch", e2e="echo RERUN breaks; echo FAILED breaks - words; " + FAILS)
    assert code == 1 and lines[-1] == "1 passed, 1 failed"
    assert "   FAILED: e2e: tests breaks" in lines and "FAILED breaks - words" in lines
    assert not any("second" in line for line in lines)


@pytest.mark.parametrize("text, why", [
    ("exit 3", "ended with exit code 3"), ("rm \"$xml\"", "ran no test"),
    ("echo '<testsuite><testcase><skipped/></testcase></testsuite>' > \"$xml\"", "ran no test"),
])
def test_a_part_that_crashes_or_runs_nothing_has_failed(gate, text, why):
    code, lines = gate("--only=torch", torch=text)
    assert code == 1 and f"   FAILED: torch: {why}" in lines


def test_second_tries_are_named_at_the_end_and_counted_over_all_runs(gate, tmp_path):
    for count in (1, 2):
        code, lines = gate("--only=e2e", e2e="echo 'RERUN tests/e2e/commands/test_run.py::test_one'")
        assert code == 0 and lines[-1] == "1 passed, 0 failed"
        assert "   needed a second try: e2e: tests/e2e/commands/test_run.py::test_one" in lines
        assert f"   second tries over all runs, in build/second_tries.tsv: {count}" in lines
    rows = (tmp_path / "build" / "second_tries.tsv").read_text().splitlines()
    assert [row.split("\t")[2:] for row in rows] == [["e2e", "tests/e2e/commands/test_run.py::test_one"]] * 2


@pytest.mark.parametrize("clang, cmake, why", [
    ("exit 0", "[ \"$1\" != --build ] || { echo 'http2.cc:7: error: why'; exit 1; }", "http2.cc:7: error: why"),
    ("exit 1", "exit 0", "apt-get install libclang-rt-14-dev")])
def test_what_stops_the_build_of_the_fuzz_targets_is_said(tmp_path, clang, cmake, why):
    copy_scripts(tmp_path, "deploy/common.sh", "tests/fuzz/run.sh", "tests/fuzz/targets/http2.cc")
    write_program(tmp_path / "bin" / "clang++", f"#!/bin/sh\n{clang}\n")
    write_program(tmp_path / "bin" / "cmake", f"#!/bin/sh\n{cmake}\n")
    code, said = run("tests/fuzz/run.sh", "http2", cwd=tmp_path, path=f"{tmp_path / 'bin'}:")
    assert (code, why in said) == (1, True), said
