# SPDX-License-Identifier: Apache-2.0
"""`rollcall report --anonymize` of a job that really hangs: every name of the site begins with
"zecret", and none of them is in what leaves the house."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import BUILD, ROLLCALL, VICTIMS, Service, ask, wait_for

SCRIPT = pathlib.Path(__file__).parents[1] / "jobs" / "python_rank.py"
FORMATS = ["text", "stacks", "json", "html"]


def write_secret_program(folder):
    """python_rank.py under another name, in a folder of its own, with secrets in what it says."""
    folder.mkdir(parents=True)
    text = SCRIPT.read_text()
    for old, new in (("batch {number} is damaged", "zecret-bucket/{number} is damaged"),
                     ('b"evaluation"', 'b"zecret-phase"')):
        assert old in text
        text = text.replace(old, new)
    (folder / "zecret_model.py").write_text(text)
    return folder / "zecret_model.py"


@pytest.fixture
def hung(daemon, tmp_path):
    """(daemon, id of its incident): rank 3 has raised an exception, the others wait."""
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)
    program = write_secret_program(tmp_path / "home" / "zecret-user")
    agent = Service([BUILD / "bin" / "rollcall-agent", f"--daemon={daemon.address}",
                     f"--dir={segments}", "--scope=directory", "--host=zecret-host"])
    job = subprocess.Popen(
        [VICTIMS / "ranks", "-n", "4", "--grace", "600", "--", sys.executable, program, "raise",
         "--run=zecret-run"],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LD_PRELOAD": str(BUILD / "lib" / "librollcall.so"),
             "LD_LIBRARY_PATH": str(BUILD / "sim"), "ROLLCALL_DIR": str(segments),
             "ROLLCALL_JOB": "zecret-job", "ROLLCALL_TENANT": "zecret-tenant",
             "NODE_NAME": "zecret-node", "POD_NAMESPACE": "zecret-space",
             "POD_NAME": "zecret-pod"})
    try:
        def confirmed():
            return [i for i in ask(daemon, "incidents")["incidents"] if i.get("confirmed_at")]
        incident = wait_for(confirmed)[0]["id"]
        wait_for(lambda: ask(daemon, f"incident?id={incident}").get("stacks"))
        yield daemon, incident
    finally:
        job.terminate()
        job.wait(timeout=120)
        agent.kill()


def report(daemon, *arguments):
    done = subprocess.run([ROLLCALL, "report", f"--daemon={daemon.address}", *arguments],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_anonymous_report_has_no_name_of_the_site_and_explains_the_hang(hung, tmp_path):
    daemon, incident = hung
    plain = report(daemon, incident, "--format=json")
    for secret in ("zecret-host", "zecret-job", "zecret-tenant", "zecret_model.py", "zecret-bucket",
                   "zecret-phase", "zecret-node", "zecret-pod"):
        assert secret in plain, f"{secret} is not in the report, so its absence shows nothing"
    map_file = tmp_path / "map.json"
    folder = report(daemon, incident, "--anonymize", f"--report-dir={tmp_path / 'out'}",
                    f"--keep-map={map_file}").strip()
    texts = {form: report(daemon, incident, "--anonymize", f"--format={form}") for form in FORMATS}
    texts.update({path.name: path.read_text() for path in pathlib.Path(folder).iterdir()})
    assert {"incident.json", "report.html", "report.txt", "stacks.txt"} <= set(texts)
    for name, text in texts.items():
        assert "zecret" not in text, f"{name}: {text[max(0, text.find('zecret') - 200):][:300]}"
        assert str(tmp_path) not in text, name
    assert "zecret" not in pathlib.Path(folder).name

    verdict = json.loads(texts["json"])["verdicts"][0]
    assert verdict["cause"] == "rank_exited" and verdict["culprits"][0]["rank"] == 3
    assert "LoaderError" in texts["text"] and "host-1" in texts["text"]
    assert "all_reduce" in texts["stacks"]
    assert map_file.stat().st_mode & 0o777 == 0o600
    assert "zecret-host" in map_file.read_text()
