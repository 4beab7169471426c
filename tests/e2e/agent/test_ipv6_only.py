# SPDX-License-Identifier: Apache-2.0
"""A host whose only network is IPv6: in a network namespace whose loopback has ::1 alone."""
import subprocess

import pytest
from conftest import BUILD, ROLLCALL, VICTIMS, Service

ONLY_IPV6 = ["unshare", "--net", "sh", "-ec", 'ip link set lo up; ip addr del 127.0.0.1/8 dev lo; exec "$@"', "sh"]


@pytest.fixture(autouse=True)
def namespace():
    tried = subprocess.run([*ONLY_IPV6, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no network namespace: {tried.stderr}")


def test_run_finds_the_hang_and_serves_its_page(tmp_path):
    done = subprocess.run([*ONLY_IPV6, ROLLCALL, "run", "--sim", "--hang-after=3s", "--on-hang=abort",
                           f"--report-dir={tmp_path}", "--", VICTIMS / "ranks", "-n", "4", "--",
                           VICTIMS / "one_rank_stops_calling"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 75, done.stderr
    assert "rank 3" in done.stderr
    assert "cannot" not in done.stderr


def inside(process, *command):
    return subprocess.run(["nsenter", "--net", f"--target={process.pid}", *command], capture_output=True, text=True,
                          timeout=120)


def test_a_daemon_serves_agents_commands_and_pages(tmp_path):
    daemon = Service([*ONLY_IPV6, BUILD / "bin" / "rollcalld", "--listen=[::1]:7655", "--http=[::1]:0",
                      f"--report-dir={tmp_path}"])
    try:
        page = daemon.read_until(r"agents on \[::1\]:7655, pages on (http://\[::1\]:\d+)/")[1]
        status = inside(daemon.process, ROLLCALL, "status", "--daemon=[::1]:7655")
        assert (status.returncode, status.stderr) == (0, ""), status
        fetch = f"import urllib.request; print(urllib.request.urlopen('{page}/api/v1/jobs').status)"
        assert inside(daemon.process, "python3", "-c", fetch).stdout == "200\n"
    finally:
        daemon.kill()
