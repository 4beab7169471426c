# SPDX-License-Identifier: Apache-2.0
"""Tests /metrics with the real Prometheus: the rules, a scrape, an alert that fires."""
import json
import pathlib
import re
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
import yaml
from conftest import PATIENCE, Service
from processes import free_port

# One after the other: the set-up downloads the programs into a folder that all share.
pytestmark = pytest.mark.xdist_group("prometheus")

ROOT = pathlib.Path(__file__).parents[3]
RULES = ROOT / "deploy" / "prometheus" / "rollcall.rules.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "rollcall.json"


@pytest.fixture(scope="module")
def programs():
    made = subprocess.run([ROOT / "deploy" / "setup_parts.sh", "prometheus"], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(made.stderr.strip())
    return ROOT / "build" / "prometheus" / "usr" / "bin"


def fetch(url, accept="*/*"):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}),
                                timeout=120) as answer:
        return answer.read().decode()


def test_promtool_accepts_the_rules(programs):
    checked = subprocess.run([programs / "promtool", "check", "rules", RULES], capture_output=True,
                             text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_promtool_accepts_the_scrape_part_of_the_recipe_for_the_collector(programs, tmp_path):
    text = (ROOT / "docs" / "running.md").read_text()
    recipe = yaml.safe_load(re.search(r"```yaml\n(receivers:\n  prometheus:.*?)```", text, re.DOTALL)[1])
    assert recipe["service"]["pipelines"]["metrics"]["receivers"] == list(recipe["receivers"])
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(recipe["receivers"]["prometheus"]["config"]))
    checked = subprocess.run([programs / "promtool", "check", "config", tmp_path / "prometheus.yml"],
                             capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_promtool_accepts_the_metrics(programs, daemon):
    checked = subprocess.run([programs / "promtool", "check", "metrics"],
                             input=fetch(f"{daemon.page}/metrics"), capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.fixture
def prometheus(programs, daemon, tmp_path):
    target = daemon.page.removeprefix("http://")
    config = tmp_path / "prometheus.yml"
    config.write_text(f"""
global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}
rule_files: [{RULES}]
scrape_configs:
  - job_name: rollcalld
    honor_labels: true
    static_configs: [{{targets: ["{target}"]}}]
""")
    address = f"127.0.0.1:{free_port()}"
    service = Service([programs / "prometheus", f"--config.file={config}",
                       f"--storage.tsdb.path={tmp_path / 'data'}",
                       f"--web.listen-address={address}"])
    service.read_until("Server is ready to receive web requests")
    yield f"http://{address}"
    service.kill()


def ask(prometheus, path, **parameters):
    query = urllib.parse.urlencode(parameters)
    return json.loads(fetch(f"{prometheus}/api/v1/{path}?{query}"))["data"]


def until(get, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not (got := get()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return got


def test_an_alert_fires_for_a_job_that_hangs(prometheus, daemon, start_job):
    job = start_job(daemon)

    def firing():
        return [alert for alert in ask(prometheus, "alerts")["alerts"]
                if alert["labels"]["alertname"] == "RollcallJobHung" and alert["state"] == "firing"]

    alerts = until(firing)
    assert alerts and alerts[0]["labels"]["job"] == "a-job"
    assert alerts[0]["annotations"]["summary"] == (
        "default/a-job, attempt 0, hangs: missing_rank")
    targets = ask(prometheus, "targets")["activeTargets"]
    assert [target["health"] for target in targets] == ["up"], targets
    # Prometheus accepts every query of the dashboard, and answers the queries about this job.
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$tenant", "default").replace("$job", "a-job")
            query = query.replace("$attempt", "0")
            result = ask(prometheus, "query", query=query)["result"]
            assert result or "rate(" in query or "increase(" in query or "state=" in query, query
    job.kill()
    assert until(lambda: not firing())
