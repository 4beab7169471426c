# SPDX-License-Identifier: Apache-2.0
"""What the tests of Kubernetes share: the rendered chart, the real webhook, pods of many kinds."""
import base64
import copy
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import jsonpatch
import kubernetes_validate
import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ROLLCALL_BUILD"])
ROLLCALL = BUILD / "bin" / "rollcall"
CHART = ROOT / "deploy" / "kubernetes" / "rollcall"
MANIFESTS = ROOT / "tests" / "kubernetes" / "manifests"
HELM = pathlib.Path(sys.prefix) / "bin" / "helm"
IMAGE = "registry.example/rollcall"
POLICY_API = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"


def helm(*arguments):
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, timeout=120)


def template(values=None, version="1.32", apis=(), name="rollcall", namespace="rollcall"):
    """What helm prints; `values`: a tree, to which the image is added."""
    tree = {"image": {"repository": IMAGE}, **(values or {})}
    file = pathlib.Path(os.environ["PYTEST_SCRATCH"]) / "values.yaml"
    file.write_text(yaml.safe_dump(tree))
    return helm("template", name, CHART, "--namespace", namespace, "--values", file,
                "--kube-version", f"{version}.0", *(f"--api-versions={api}" for api in apis))


def render(*arguments, **options):
    done = template(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def find(documents, kind, name=None):
    found = [d for d in documents if d["kind"] == kind and name in (None, d["metadata"]["name"])]
    assert len(found) == 1, (kind, name, [d["metadata"]["name"] for d in documents])
    return found[0]


def check(document, version):
    """Fails on what the schemas of this version do not permit, and on a kind without a schema."""
    kubernetes_validate.validate(document, version, strict=True)


@pytest.fixture(scope="session", autouse=True)
def scratch(tmp_path_factory):
    os.environ["PYTEST_SCRATCH"] = str(tmp_path_factory.mktemp("values"))


def load(name):
    return yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text())


class Webhook:
    """The real `rollcall webhook`, asked as the API server does."""

    def __init__(self, arguments, ca):
        self.process = subprocess.Popen([ROLLCALL, *arguments], stderr=subprocess.PIPE, text=True)
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line)
            listening = re.search(r"webhook listens on port (\d+)", line)
            if listening:
                break
        else:
            raise AssertionError("".join(self.lines))
        threading.Thread(target=self._read, daemon=True).start()
        self.port = int(listening[1])
        self.url = f"https://127.0.0.1:{self.port}"
        self.context = ssl.create_default_context(cadata=ca)

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def post(self, body, path="/mutate?timeout=5s"):
        """(status, body)"""
        request = urllib.request.Request(self.url + path, data=body,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def review(self, pod, **request):
        """The response to the creation of this pod."""
        question = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": "CREATE",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": pod["metadata"].get("namespace", "ml"), "dryRun": False, "object": pod,
            "oldObject": None, "userInfo": {"username": "system:serviceaccount:kube-system:job-controller"},
            **request}}
        status, body = self.post(json.dumps(question).encode())
        answer = json.loads(body)
        assert status == 200 and answer["apiVersion"] == "admission.k8s.io/v1"
        assert answer["kind"] == "AdmissionReview"
        response = answer["response"]
        assert response["uid"] == question["request"]["uid"]
        assert response["allowed"] is True, "it never rejects"
        return response

    def mutate(self, pod, **request):
        """The pod as the API server makes it from the response."""
        response = self.review(pod, **request)
        if "patch" not in response:
            return copy.deepcopy(pod)
        assert response["patchType"] == "JSONPatch"
        return jsonpatch.apply_patch(pod, json.loads(base64.b64decode(response["patch"])))

    def close(self):
        self.process.kill()
        self.process.wait(timeout=120)


def write_secret(documents, name, folder):
    """The files of a secret, as the kubelet mounts it."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, value in find(documents, "Secret", name)["data"].items():
        (folder / key).write_bytes(base64.b64decode(value))
        (folder / key).chmod(0o600)
    return folder


def webhook_arguments(documents, tls):
    """The flags of the chart's webhook, with the certificates in this folder and a free port."""
    container, = find(documents, "Deployment", "rollcall-webhook")["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["/usr/bin/rollcall"]
    return [re.sub(r"--listen=.*", "--listen=127.0.0.1:0", argument.replace("=/tls/", f"={tls}/"))
            for argument in container["args"]]


@pytest.fixture(scope="session")
def start_webhook(tmp_path_factory):
    """start_webhook(values): the webhook as the chart starts it, with the chart's certificates."""
    webhooks = []

    def start(values=None):
        documents = render({"injection": {"mode": "webhook"}, **(values or {})})
        tls = write_secret(documents, "rollcall-webhook-tls", tmp_path_factory.mktemp("tls"))
        webhooks.append(Webhook(webhook_arguments(documents, tls), (tls / "ca.crt").read_text()))
        return webhooks[-1]

    yield start
    for webhook in webhooks:
        webhook.close()


@pytest.fixture(scope="session")
def webhook(start_webhook):
    return start_webhook()


def variables(pod, container=0, kind="containers"):
    """{NAME: VALUE, or "<FIELD>"}, in order."""
    return {v["name"]: v["value"] if "value" in v else f"<{v['valueFrom']['fieldRef']['fieldPath']}>"
            for v in pod["spec"][kind][container].get("env", [])}
