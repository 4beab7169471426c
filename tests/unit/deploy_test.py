# SPDX-License-Identifier: Apache-2.0
"""A script in deploy/ that several tests run at once."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Fetches the package that the fixture made.
APT_GET = """#!/bin/sh
[ "$1 $2 $3" = "download -qq prometheus" ] && cp "{package}" .
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the script, and an apt-get whose prometheus is /bin/true with 64 MiB of padding."""
    (tmp_path / "deploy").mkdir()
    for name in ("common.sh", "setup_prometheus.sh"):
        shutil.copy(ROOT / "deploy" / name, tmp_path / "deploy")
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
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "apt-get").write_text(APT_GET.format(package=package))
    (tmp_path / "bin" / "apt-get").chmod(0o755)
    return tmp_path


def start(checkout):
    """Sets Prometheus up, then uses it at once, as a test does."""
    return subprocess.Popen(
        ["bash", "-c", "deploy/setup_prometheus.sh && build/prometheus/usr/bin/promtool --version"], cwd=checkout,
        env={"PATH": f"{checkout / 'bin'}:/usr/bin:/bin"}, stderr=subprocess.PIPE, text=True)


def test_each_of_several_that_set_prometheus_up_at_once_finds_whole_programs(checkout):
    for _ in range(3):
        shutil.rmtree(checkout / "build", ignore_errors=True)
        errors = [process.communicate(timeout=60)[1] for process in [start(checkout) for _ in range(6)]]
        assert errors == [""] * 6
