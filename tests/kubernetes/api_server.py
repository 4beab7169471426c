# SPDX-License-Identifier: Apache-2.0
"""A real API server of Kubernetes with its controllers and etcd, in a network of its own.

tests/kubernetes/build_api_server.sh builds the programs from Debian's source package, which is 1.20.2: it
has neither admission policies nor policy/v1, and names no node in tokens. There is no kubelet and no
scheduler: pods are stored, and none runs."""
import json
import pathlib
import shutil
import subprocess
import sys

import yaml
from conftest import CHART, ROOT
from network import Network, wait_for

PROGRAMS = ROOT / "build" / "api-server"
SERVICES = "10.96.0.0/16"  # each address is this host's: a Service is reached at its own
ADMIN = "token-of-the-admin"
NAMES = "127.0.0.1 localhost kubernetes.default.svc\n"
TOOLS = pathlib.Path(sys.prefix) / "bin"


def why_not():
    if not (PROGRAMS / "kube-apiserver").exists():
        return "there is no API server:  tests/kubernetes/build_api_server.sh"
    return "" if shutil.which("etcd") else "there is no etcd:  apt-get install etcd-server"


def chart_for_it(folder):
    """The chart without its minimum version, and with the older API of disruption budgets."""
    chart = shutil.copytree(CHART, folder / "rollcall")
    about = chart / "Chart.yaml"
    about.write_text("".join(line for line in about.read_text().splitlines(True)
                             if not line.startswith("kubeVersion:")))
    for template in (chart / "templates").iterdir():
        template.write_text(template.read_text().replace("apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n"))
    return chart


def as_it_knows_them(documents):
    """Rendered documents, without what is newer than this server."""
    for document in documents:
        if document["kind"] == "PodDisruptionBudget":
            document["apiVersion"] = "policy/v1beta1"  # v1: since 1.21
        if document["kind"] == "StatefulSet":
            del document["spec"]["minReadySeconds"]  # since 1.22
    return documents


class ApiServer(Network):
    def __init__(self, folder):
        super().__init__(folder, NAMES, SERVICES)
        self.environment = {**self.environment, "KUBECONFIG": str(folder / "access"), "HOME": str(folder)}

    def await_ready(self):
        self.await_names()
        self._start_server()
        self._write_access()
        wait_for(lambda: self.kubectl("get", "--raw", "/readyz").stdout == "ok")
        self._start_controllers()

    def _start_server(self):
        folder = self.folder
        subprocess.run(["openssl", "genrsa", "-out", folder / "accounts.key", "2048"], check=True, capture_output=True)
        (folder / "tokens.csv").write_text(f"{ADMIN},admin,1,system:masters\n")
        self.start("etcd", *self.inside(
            "etcd", f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync",
            *(f"--{name}=http://127.0.0.1:{port}" for name, port in (
                ("listen-client-urls", 2379), ("advertise-client-urls", 2379), ("listen-peer-urls", 2380)))))
        self.start("server", *self.inside(
            PROGRAMS / "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--secure-port=443",
            "--bind-address=127.0.0.1", "--advertise-address=10.96.255.1", f"--service-cluster-ip-range={SERVICES}",
            f"--cert-dir={folder / 'certificates'}", f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'accounts.key'}",
            f"--service-account-signing-key-file={folder / 'accounts.key'}"))
        self.certificate = folder / "certificates" / "apiserver.crt"
        wait_for(self.certificate.exists)

    def _write_access(self):
        (self.folder / "access").write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:443",
                                                   "certificate-authority": str(self.certificate)}}],
            "users": [{"name": "c", "user": {"token": ADMIN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}))

    def _start_controllers(self):
        self.start("controllers", *self.inside(
            PROGRAMS / "kube-controller-manager", f"--kubeconfig={self.folder / 'access'}",
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            f"--root-ca-file={self.certificate}", "--use-service-account-credentials",
            "--controllers=*,-nodelifecycle,-nodeipam,-attachdetach"))
        wait_for(lambda: self.get("serviceaccounts", "default", "default"))

    def kubectl(self, *arguments, **options):
        return self.run(TOOLS / "kubectl", *arguments, **options)

    def helm(self, *arguments):
        return self.run(TOOLS / "helm", *arguments)

    def must(self, *arguments, **options):
        done = self.kubectl(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def create(self, *objects):
        """kubectl's answer: a line for each that was created, and errors."""
        return self.kubectl("create", "--filename=-", input=json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def get(self, kind, name, namespace="default"):
        """None if it does not exist."""
        done = self.kubectl("get", kind, name, f"--namespace={namespace}", "--output=json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def list(self, kind, *arguments):
        return json.loads(self.must("get", kind, "--output=json", *arguments))["items"]
