# SPDX-License-Identifier: Apache-2.0
"""The recipe of a job with an agent of its own."""
import subprocess

import pytest
import yaml
from conftest import BUILD, ROOT, check, load, render, write_secret

RECIPE = ROOT / "deploy" / "kubernetes" / "sidecar.yaml"


def recipe():
    return yaml.safe_load(RECIPE.read_text())


@pytest.mark.parametrize("version", ["1.32", "1.36", "1.37"])
def test_the_recipe_is_valid(version):
    check(recipe(), version)


def pod():
    return recipe()["spec"]["template"]["spec"]


def test_pod_security_admits_it_at_the_level_restricted():
    spec = pod()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any(spec.get(key) for key in ("hostPID", "hostIPC", "hostNetwork"))
    for container in [*spec["initContainers"], *spec["containers"]]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "add" not in context["capabilities"] and not context.get("privileged")
    kinds = {next(key for key in volume if key != "name") for volume in spec["volumes"]}
    assert kinds <= {"emptyDir", "configMap", "secret", "projected"}


def test_agent_and_job_share_what_they_must():
    spec = pod()
    assert spec["shareProcessNamespace"] is True
    agent = spec["initContainers"][1]
    assert agent["restartPolicy"] == "Always"
    job = {variable["name"]: variable.get("value") for variable in spec["containers"][0]["env"]}
    assert f"--dir={job['ROLLCALL_DIR']}" in agent["args"]


def test_the_agent_takes_the_flags_of_the_recipe(tmp_path):
    tls = write_secret(render(), "rollcall-daemon-tls", tmp_path / "ca")
    (tmp_path / "token").mkdir()
    (tmp_path / "token" / "token").touch(mode=0o600)
    (tmp_path / "token" / "token").write_text("a.b.c")
    arguments = [argument.replace("=/ca/", f"={tls}/").replace("=/token/", f"={tmp_path}/token/")
                 .replace("$(POD_NAME)", "train-0-x")
                 for argument in pod()["initContainers"][1]["args"]]
    done = subprocess.run([BUILD / "bin" / "rollcall-agent", *arguments, "--check-config"],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_its_volumes_and_mounts_are_those_of_the_injection(webhook):
    injected = webhook.mutate(load("job"))["spec"]
    assert [v for v in pod()["volumes"] if "emptyDir" in v] == injected["volumes"]
    assert pod()["containers"][0]["volumeMounts"] == injected["containers"][0]["volumeMounts"]
    assert pod()["initContainers"][0]["command"] == injected["initContainers"][0]["command"]
