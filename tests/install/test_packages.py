# SPDX-License-Identifier: Apache-2.0
"""The wheel, deb, rpm and tgz of deploy/package.sh, installed, run and removed."""
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

PACKAGES = pathlib.Path(os.environ["ROLLCALL_PACKAGES"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
MACHINE = os.uname().machine
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(MACHINE)
PROGRAMS = ("rollcall", "rollcall-agent", "rollcalld", "rollcall-probe")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=180,
                          **options)


def one(pattern):
    found, = PACKAGES.glob(pattern)
    return found


def deb(package):
    return one(f"{package}_*_{'all' if package == 'rollcall-slurm' else ARCHITECTURE}.deb")


def rpm_of(package):
    return one(f"{package}-0*.{'noarch' if package == 'rollcall-slurm' else MACHINE}.rpm")


def needed(file):
    return re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", file).stdout)


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    folder = tmp_path_factory.mktemp("venv") / "venv"
    assert run(sys.executable, "-m", "venv", folder).returncode == 0
    result = run(folder / "bin" / "pip", "install", "--no-index", one(f"*_{MACHINE}.whl"))
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tgz")
    with tarfile.open(one(f"*-{MACHINE}.tgz")) as archive:
        archive.extractall(folder)
    found, = folder.iterdir()
    return found


@pytest.mark.long
def test_the_sums_are_those_of_the_files():
    lines = (PACKAGES / "SHA256SUMS").read_text().splitlines()
    assert len(lines) >= 8
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256((PACKAGES / name).read_bytes()).hexdigest() == digest


def test_a_newcomer_gets_a_verdict_from_the_wheel_alone(venv, tmp_path):
    # Nothing of this machine but Python: no build folder, no library of the system but libc.
    environment = {"PATH": f"{venv}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    result = run(venv / "bin" / "rollcall", "demo", cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stderr
    assert "rank 3" in result.stderr and "has not called AllReduce #6" in " ".join(
        result.stderr.split())
    assert "`validate`" in result.stderr and "train.py:" in result.stderr
    report, = (tmp_path / "rollcall-reports").iterdir()
    verdict = json.loads((report / "incident.json").read_text())["verdicts"][0]
    assert (verdict["cause"], [culprit["rank"] for culprit in verdict["culprits"]]) == (
        "missing_rank", [3])


def test_a_job_under_the_wheel_is_recorded_and_keeps_its_exit_code(venv, tmp_path):
    script = "import rollcall, sys; rollcall.set_step(7); sys.exit(0 if rollcall.is_watched() else 9)"
    watched = run(venv / "bin" / "rollcall", "run", "--http=none", "--", venv / "bin" / "python", "-c",
                  script, cwd=tmp_path)
    assert watched.returncode == 0, watched.stderr
    alone = run(venv / "bin" / "python", "-c", script.replace("0 if", "3 if not"), cwd=tmp_path)
    assert alone.returncode == 3


def test_python_prints_the_path_of_the_library(venv, tmp_path):
    path = run(venv / "bin" / "python", "-m", "rollcall", cwd=tmp_path).stdout.strip()
    assert pathlib.Path(path) == (venv / "lib" / "rollcall" / "librollcall.so").resolve()
    alone = tmp_path / "alone"
    shutil.copytree(next((venv / "lib").glob("python*")) / "site-packages" / "rollcall",
                    alone / "rollcall")
    missing = run(sys.executable, "-m", "rollcall", cwd=alone)
    assert missing.returncode == 1 and "install Rollcall's wheel" in missing.stderr


def test_the_wheel_alone_says_how_to_get_the_server_for_assistants(venv, tmp_path):
    alone = run(venv / "bin" / "rollcall-mcp", cwd=tmp_path)
    assert alone.returncode == 2 and "-m pip install 'mcp>=2.3,<3'" in alone.stderr
    # Its files are all there: the runbooks, and the requirement that the words above install.
    script = ("import importlib.metadata, rollcall.mcp.runbooks as r; "
              "print(*r.runbooks(), *importlib.metadata.requires('rollcall'), sep='\\n')")
    *causes, requirement = run(venv / "bin" / "python", "-c", script, cwd=tmp_path).stdout.splitlines()
    assert causes == sorted(file.stem for file in (SOURCE / "docs" / "runbook").iterdir())
    assert requirement == 'mcp<3,>=2.3; extra == "mcp"'


@pytest.mark.long
def test_removing_the_wheel_leaves_nothing(tmp_path):
    folder = tmp_path / "venv"
    run(sys.executable, "-m", "venv", folder)
    pip = folder / "bin" / "pip"
    before = {file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in str(file)}
    assert run(pip, "install", "--no-index", one(f"*_{MACHINE}.whl")).returncode == 0
    assert run(pip, "uninstall", "--yes", "rollcall").returncode == 0
    after = {file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in str(file)}
    assert after == before


def test_the_wheels_record_has_all_files():
    with zipfile.ZipFile(one(f"*_{MACHINE}.whl")) as archive:
        assert archive.testzip() is None
        record, = (name for name in archive.namelist() if name.endswith("/RECORD"))
        recorded = {line.split(",")[0] for line in archive.read(record).decode().splitlines()}
        assert recorded == set(archive.namelist())
        assert any(name.endswith("licenses/THIRD_PARTY_NOTICES") for name in recorded)
        assert any("sboms/" in name for name in recorded)


@pytest.mark.long
def test_the_programs_need_no_library_and_the_library_only_libc(unpacked):
    for program in PROGRAMS:
        file = unpacked / "bin" / program
        assert needed(file) == [] and "INTERP" not in run("readelf", "-l", file).stdout, program
    library = unpacked / "lib" / "rollcall" / "librollcall.so"
    assert set(needed(library)) <= {"libc.so.6", "libdl.so.2", "libpthread.so.0",
                                    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    versions = re.findall(r"GLIBC_2\.(\d+)", run("objdump", "-T", library).stdout)
    assert max(map(int, versions)) <= 17


@pytest.mark.long
def test_a_program_runs_where_there_is_nothing_else(unpacked, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    for program in PROGRAMS:
        shutil.copy(unpacked / "bin" / program, tmp_path / program)
    for program in ("rollcall", "rollcall-agent", "rollcalld"):
        result = run("chroot", tmp_path, f"/{program}", "--version")
        assert result.returncode == 0 and "0.1.0" in result.stdout, result.stderr
    # It looks a name up and connects, without nsswitch.conf and its modules.
    asked = run("chroot", tmp_path, "/rollcall", "status", "--daemon=127.0.0.1:1")
    assert asked.returncode == 1 and "cannot reach the daemon" in asked.stderr


@pytest.mark.long
def test_a_foreign_name_service_module_harms_no_program(unpacked, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a mount namespace needs root")
    (tmp_path / "nsswitch.conf").write_text("passwd: sss files\nhosts: myhostname resolve files dns\n")
    script = (f"mount --bind {tmp_path}/nsswitch.conf /etc/nsswitch.conf && "
              f"exec {unpacked}/bin/rollcall status --daemon=localhost:1 --daemon-user=nobody")
    result = run("unshare", "--mount", "sh", "-c", script)
    assert result.returncode == 1 and "cannot reach the daemon" in result.stderr, result


def runs(root, package):
    """What the package installed below the root is whole."""
    if package != "rollcall-slurm":
        assert "0.1.0" in run(root / "usr" / "bin" / package, "--version").stdout
        return
    tools = root / "usr" / "lib" / "rollcall" / "slurm"
    for script in ("on-hang", "watch-step", "task_prolog", "prolog", "epilog"):
        assert os.access(tools / script, os.X_OK), script
    assert run(tools / "on-hang", "--help").returncode == 0
    examples = root / "usr" / "share" / "rollcall"
    for file in ("slurm/spank_rollcall.c", "slurm/enroot/hooks.d/50-rollcall.sh",
                 "slurm/enroot/mounts.d/50-rollcall.fstab", "modulefiles/rollcall.lua", "modulefiles/rollcall"):
        assert (examples / file).stat().st_size > 0, file
    assert (root / "etc" / "rollcall" / "slurm.yaml").exists()


@pytest.mark.parametrize("package", ["rollcall", "rollcall-agent", "rollcalld", "rollcall-slurm"])
def test_a_deb_installs_and_removes_without_a_rest(package, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("dpkg needs root")
    root = tmp_path / "root"
    (root / "var" / "lib" / "dpkg").mkdir(parents=True)
    for file in ("status", "available"):
        (root / "var" / "lib" / "dpkg" / file).touch()
    # The empty root has no shell for the scripts of the package; they know DPKG_ROOT.
    dpkg = ["dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", "--log=/dev/null"]
    result = run(*dpkg, "--install", deb(package))
    assert result.returncode == 0, result.stderr
    runs(root, package)
    assert (root / "usr" / "share" / "doc" / package / "copyright").exists()
    if package == "rollcall":
        demo = run(root / "usr" / "bin" / "rollcall", "demo", cwd=tmp_path)
        assert demo.returncode == 0, demo.stderr
    unit = root / "usr" / "lib" / "systemd" / "system" / f"{package}.service"
    assert unit.exists() == (package in ("rollcall-agent", "rollcalld"))
    if unit.exists():
        state = root / "var" / "lib" / "rollcall" / "rollcall-reports"
        state.mkdir(parents=True)
        (state / "kept").touch()
        assert run(*dpkg, "--remove", package).returncode == 0
        assert (state / "kept").exists() and list((root / "etc" / "rollcall").iterdir())
        if package == "rollcall-agent":
            shutil.rmtree(root / "var" / "lib" / "rollcall")
    assert run(*dpkg, "--purge", package).returncode == 0
    assert not (root / "var" / "lib" / "rollcall").exists()
    rest = [file for file in root.rglob("*") if file.is_file() and "var/lib/dpkg" not in str(file)]
    assert rest == []


@pytest.mark.long
def test_lintian_finds_nothing_that_is_not_explained():
    if shutil.which("lintian") is None:
        pytest.skip("there is no lintian; to have it:  apt-get install lintian")
    result = run("lintian", "--fail-on", "error,warning", *sorted(PACKAGES.glob("*.deb")))
    assert result.returncode == 0, result.stdout


@pytest.mark.long
def test_rpmlint_finds_nothing_that_is_not_explained():
    if shutil.which("rpmlint") is None:
        pytest.skip("there is no rpmlint; to have it:  apt-get install rpmlint")
    rpms = sorted(PACKAGES.glob("*.rpm"))
    result = run("rpmlint", "--config", SOURCE / "deploy" / "package" / "rpmlint.toml", *rpms)
    assert f" {len(rpms)} packages and 0 specfiles checked; 0 errors, 0 warnings" in result.stdout, result.stdout


@pytest.mark.long
def test_each_service_has_its_page_of_the_manual(unpacked):
    for program in ("rollcall-agent", "rollcalld"):
        page = unpacked / "share" / "man" / "man8" / f"{program}.8.gz"
        text = gzip.decompress(page.read_bytes()).decode().replace("\\-", "-")
        for flag in re.findall(r"^ +(?:-h,)?(--[\w-]+)", run(unpacked / "bin" / program, "--help").stdout,
                               re.MULTILINE):
            assert flag in text
        # Not the folder of the user who made the package.
        assert ("/dev/shm/rollcall-UID" in text) == (program == "rollcall-agent")


@pytest.mark.long
def test_nothing_names_the_folder_or_the_time_of_the_build(unpacked):
    folder = str(SOURCE).encode()
    for file in unpacked.rglob("*"):
        if file.is_file():
            assert folder not in file.read_bytes(), file
    sections = run("readelf", "--notes", *[unpacked / "bin" / program for program in PROGRAMS]).stdout
    assert "Build ID" not in sections  # a hash that also covers the folder's name
    moments = {entry.mtime for entry in tarfile.open(one(f"*-{MACHINE}.tgz"))}
    assert len(moments) == 1


@pytest.mark.long
@pytest.mark.parametrize("package", ["rollcall", "rollcall-agent", "rollcalld", "rollcall-slurm"])
def test_an_rpm_installs_and_removes_without_a_rest(package, tmp_path):
    if os.geteuid() != 0 or shutil.which("rpm") is None:
        pytest.skip("this needs root and rpm; to have it:  apt-get install rpm")
    root = tmp_path / "root"
    root.mkdir()
    # Scripts would need a shell in the empty root.
    rpm = ["rpm", f"--root={root}", "--dbpath=/db", "--nodeps", "--noscripts"]
    result = run(*rpm, "--install", rpm_of(package))
    assert result.returncode == 0, result.stderr
    runs(root, package)
    papers = run("rpm", f"--root={root}", "--dbpath=/db", "--query", "--docfiles", package).stdout
    assert f"/usr/share/doc/{package}/copyright" in papers
    assert ("/usr/share/man/" in papers) == (package != "rollcall-slurm")
    if package == "rollcall":
        demo = run(root / "usr" / "bin" / "rollcall", "demo", cwd=tmp_path)
        assert demo.returncode == 0, demo.stderr
    assert run(*rpm, "--erase", package).returncode == 0
    assert [file for file in root.rglob("*") if file.is_file() and "db" not in file.relative_to(root).parts] == []


@pytest.mark.long
@pytest.mark.parametrize("package", ["rollcall", "rollcall-agent", "rollcalld", "rollcall-slurm"])
def test_an_rpm_has_the_files_of_the_deb(package):
    if shutil.which("rpm") is None:
        pytest.skip("there is no rpm; to have it:  apt-get install rpm")
    listed = run("rpm", "--query", "--package", "--list", rpm_of(package)).stdout.split()
    contents = run("dpkg-deb", "--contents", deb(package)).stdout
    files = {line.split()[5][1:] for line in contents.splitlines() if not line.startswith("d")}
    assert files and {file for file in files if "/lintian/" not in file} <= set(listed)
    requires = run("rpm", "--query", "--package", "--requires", rpm_of(package)).stdout
    assert not [line for line in requires.splitlines() if ".so" in line]


@pytest.mark.long
def test_the_bill_of_materials_names_what_is_inside(unpacked):
    bom = json.loads((unpacked / "share" / "doc" / "rollcall" / "sbom.cdx.json").read_text())
    names = {component["name"] for component in bom["components"]}
    assert {"grpc", "protobuf", "openssl", "elfutils", "libunwind", "glibc", "sqlite3"} <= names
    notices = (unpacked / "share" / "doc" / "rollcall" / "THIRD_PARTY_NOTICES").read_text()
    for name in names:
        assert f"\n{name} " in notices
