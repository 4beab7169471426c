# SPDX-License-Identifier: Apache-2.0
"""The chart, the webhook and the daemon with a real API server of Kubernetes: see api_server.py."""
import copy
import json
import re
import time

import pytest
import yaml
from api_server import TOOLS, ApiServer, as_it_knows_them, chart_for_it, why_not
from conftest import BUILD, IMAGE, ROLLCALL, load, render, webhook_arguments, write_secret
from network import can_be_alone, wait_for
from pods import PODS
from test_chart import FOREIGN, VALUES

pytestmark = [pytest.mark.long,
              pytest.mark.skipif(bool(why_not()), reason=why_not() or "it is there"),
              pytest.mark.skipif(not can_be_alone(), reason="needs root, and network and mount namespaces")]
WITH_WEBHOOK = {"injection": {"mode": "webhook"}, "daemon": {"events": True, "hangAfter": "3s"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = ApiServer(tmp_path_factory.mktemp("cluster"))
    try:
        made.await_ready()
        made.must("create", "namespace", "rollcall")
        for name, labels in (("ml", {"rollcall/inject": "true"}), ("plain", {})):
            made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
            wait_for(lambda: made.get("serviceaccounts", "default", name))
        yield made
    finally:
        made.end()


def with_image(server, values, name):
    file = server.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"image": {"repository": IMAGE}, **values}))
    return f"--values={file}"


@pytest.fixture(scope="module")
def release(server):
    """The chart is installed, and its webhook runs at the address of its Service."""
    chart = chart_for_it(server.folder)
    done = server.helm("install", "rollcall", chart, "--namespace=rollcall", with_image(server, WITH_WEBHOOK, "values"))
    assert done.returncode == 0, done.stderr
    start_webhook(server)
    return chart


def secret_files(server, name, folder):
    return write_secret([server.get("secret", name, "rollcall")], name, folder)


def start_webhook(server):
    """The process is server.webhook."""
    address = server.get("service", "rollcall-webhook", "rollcall")["spec"]["clusterIP"]
    tls = secret_files(server, "rollcall-webhook-tls", server.folder / "webhook-tls")
    deployment = server.get("deployment", "rollcall-webhook", "rollcall")
    arguments = [argument.replace("127.0.0.1:0", f"{address}:443")
                 for argument in webhook_arguments([deployment], tls)]
    server.webhook = server.start("webhook", *server.inside(ROLLCALL, *arguments))
    wait_for(lambda: "webhook listens" in (server.folder / "webhook.log").read_text())


def is_injected(pod):
    return any(container.get("command", [""])[0] == "/usr/bin/rollcall"
               for container in pod["spec"].get("initContainers", []))


@pytest.mark.parametrize("name", [name for name in VALUES if name != "policy"])  # this server has none
def test_the_api_server_takes_every_object_of_the_chart(server, name):
    values = copy.deepcopy(VALUES[name])
    if name == "everything":
        values["agent"]["appArmorProfile"] = {}  # since 1.30
    objects = [document for document in as_it_knows_them(render(values, version="1.28"))
               if document["kind"] not in FOREIGN]
    done = server.kubectl("create", "--dry-run=server", "--filename=-", "--output=name",
                          input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == len(objects)


def test_an_upgrade_keeps_the_certificates_and_an_uninstall_leaves_nothing_but_the_history(server):
    chart = chart_for_it(server.folder / "second")
    values = with_image(server, {"injection": {"mode": "webhook"}, "daemon": {"events": True}}, "second")
    server.must("create", "namespace", "second")
    common = ["second", "--namespace=second"]
    done = server.helm("install", *common, chart, values)
    assert done.returncode == 0, done.stderr
    names = ["second-rollcall-daemon-tls", "second-rollcall-webhook-tls"]
    before = {name: server.get("secret", name, "second")["data"] for name in names}
    configuration = "second-rollcall.second"
    bundle = server.get("mutatingwebhookconfiguration", configuration)["webhooks"][0]["clientConfig"]["caBundle"]
    done = server.helm("upgrade", *common, chart, values, "--set=daemon.hangAfter=2m")
    assert done.returncode == 0, done.stderr
    assert {name: server.get("secret", name, "second")["data"] for name in names} == before
    hook = server.get("mutatingwebhookconfiguration", configuration)["webhooks"][0]
    assert hook["clientConfig"]["caBundle"] == bundle == before[names[1]]["ca.crt"]
    assert "--hang-after=2m" in json.dumps(server.get("deployment", "second-rollcall-daemon", "second"))
    kinds = ("all,configmaps,secrets,serviceaccounts,networkpolicies,poddisruptionbudgets,persistentvolumeclaims,"
             "clusterroles,clusterrolebindings,mutatingwebhookconfigurations")
    def left():
        return [(thing["kind"], thing["metadata"]["name"]) for thing in server.list(
            kinds, "--all-namespaces", "--selector=app.kubernetes.io/instance=second")]

    assert len(left()) > 15
    done = server.helm("uninstall", *common)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: left() == [("PersistentVolumeClaim", "second-rollcall-daemon")])


def test_the_pod_of_a_job_gets_the_library(server, release):
    server.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "pretrain", "namespace": "ml"},
                   "spec": {"template": {"spec": {
                       "restartPolicy": "Never", "containers": [{
                           "name": "train", "image": "registry.example/train:1",
                           "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}})
    pod, = wait_for(lambda: server.list("pods", "--namespace=ml", "--selector=job-name=pretrain"))
    assert is_injected(pod)
    container, = pod["spec"]["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert mounts["/etc/ld.so.preload"] == "rollcall-library"
    assert pod["spec"]["initContainers"][0]["command"][0] == "/usr/bin/rollcall"


def test_no_pod_that_the_api_server_takes_without_the_webhook_is_refused_with_it(server, release, webhook):
    def pods_of(namespace):
        pods = []
        for number, pod in enumerate(PODS):
            pod = copy.deepcopy(pod)
            pod["metadata"] |= {"namespace": namespace, "name": f"pod-{number}"}
            pod["spec"].pop("os", None)  # since 1.23
            pods.append(pod)
        return pods

    def names_in(namespace):
        return {pod["metadata"]["name"]: pod for pod in server.list("pods", f"--namespace={namespace}")
                if pod["metadata"]["name"].startswith("pod-")}

    server.create(*pods_of("plain"))
    plain = names_in("plain")
    assert len(plain) > 100 and not any(map(is_injected, plain.values()))
    server.create(*pods_of("ml"))
    stored = names_in("ml")
    assert stored.keys() == plain.keys()
    expected = {pod["metadata"]["name"] for pod in pods_of("ml")
                if pod["metadata"]["name"] in plain and is_injected(webhook.mutate(pod))}
    assert {name for name, pod in stored.items() if is_injected(pod)} == expected
    assert len(expected) > 30
    print(f"{len(plain)} of {len(PODS)} pods are valid, {len(expected)} got the library")


def test_a_webhook_that_is_away_holds_up_no_pod(server, release):
    server.webhook.kill()
    server.webhook.wait(timeout=120)
    pod = copy.deepcopy(load("pod"))
    pod["metadata"] |= {"namespace": "ml", "name": "without-webhook"}
    begun = time.monotonic()
    done = server.create(pod)
    assert done.returncode == 0, done.stderr
    print(f"created in {time.monotonic() - begun:.1f} s")
    assert not is_injected(server.get("pod", "without-webhook", "ml"))
    start_webhook(server)
    again = copy.deepcopy(pod)
    again["metadata"]["name"] = "with-webhook"
    wait_for(lambda: (server.create(again) and is_injected(server.get("pod", "with-webhook", "ml"))) or
             (server.must("delete", "pod", "with-webhook", "--namespace=ml", "--grace-period=0", "--force") and False))


def account_of(server, name, folder):
    """What the kubelet mounts for the service account."""
    folder.mkdir()
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(server.must("create", "token", name, "--namespace=rollcall").strip())
    (folder / "ca.crt").write_bytes(server.certificate.read_bytes())
    return folder


def token_file(server, account, folder, audience="rollcall", *more, namespace="rollcall"):
    file = folder / f"{account}.token"
    file.touch(mode=0o600)
    file.write_text(server.must("create", "token", account, f"--namespace={namespace}",
                                f"--audience={audience}", *more).strip())
    return file


@pytest.fixture(scope="module")
def daemon(server, release, tmp_path_factory):
    """The chart's daemon, at the address of its Service."""
    folder = tmp_path_factory.mktemp("daemon")
    address = server.get("service", "rollcall-daemon", "rollcall")["spec"]["clusterIP"]
    account = account_of(server, "rollcall-daemon", folder / "account")
    tls = secret_files(server, "rollcall-daemon-tls", folder / "tls")
    container, = server.get("deployment", "rollcall-daemon", "rollcall")["spec"]["template"]["spec"]["containers"]
    flags = "\n".join(container["args"])
    for inside, here in {"/tls/": f"{tls}/", "/var/run/secrets/kubernetes.io/serviceaccount": str(account),
                         "0.0.0.0": address, "/var/lib/rollcall": str(folder / "state")}.items():
        flags = flags.replace(inside, here)
    server.start("daemon", *server.inside(BUILD / "bin" / "rollcalld", *flags.split("\n")), env=server.environment)
    log = server.folder / "daemon.log"
    wait_for(lambda: "agents on" in log.read_text())
    hosts = server.folder / "hosts"
    with open(hosts, "a") as file:
        file.write(f"{address} rollcall-daemon.rollcall.svc\n")
    return tls


def status(server, tls, token):
    return server.run(ROLLCALL, "status", "--daemon=rollcall-daemon.rollcall.svc:7655", f"--tls-ca={tls / 'ca.crt'}",
                      f"--token-file={token}")


def test_the_daemon_admits_the_viewers_account_and_no_other(server, daemon, tmp_path):
    done = status(server, daemon, token_file(server, "rollcall-viewer", tmp_path))
    assert done.returncode == 0, done.stderr
    refused = status(server, daemon, token_file(server, "default", tmp_path))
    assert refused.returncode != 0 and "system:serviceaccount:rollcall:default" in refused.stderr
    other = token_file(server, "rollcall-viewer", tmp_path, "https://kubernetes.default.svc")
    refused = status(server, daemon, other)
    assert refused.returncode != 0, "a token for the API server is none for Rollcall"


def test_a_hang_becomes_an_event_that_kubectl_shows_on_the_pod(server, daemon, tmp_path):
    pod = copy.deepcopy(load("pod"))
    pod["metadata"] |= {"namespace": "ml", "name": "pretrain-0-x7k2p"}
    assert server.create(pod).returncode == 0
    uid = server.get("pod", "pretrain-0-x7k2p", "ml")["metadata"]["uid"]
    agent, = server.get("daemonset", "rollcall-agent", "rollcall")["spec"]["template"]["spec"]["containers"]
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)
    flags = "\n".join(agent["args"])
    for inside, here in {"$(NODE_NAME)": "node-7", "/tls/": f"{daemon}/",
                         "/token/token": str(token_file(server, "rollcall-agent", tmp_path))}.items():
        flags = flags.replace(inside, here)
    server.start("agent", *server.inside(BUILD / "bin" / "rollcall-agent", *flags.split("\n"), f"--dir={segments}",
                                         "--scope=directory"), env=server.environment)
    server.start("job", *server.inside(
        "env", f"LD_PRELOAD={BUILD / 'lib' / 'librollcall.so'}", f"LD_LIBRARY_PATH={BUILD / 'sim'}",
        f"ROLLCALL_DIR={segments}", "ROLLCALL_JOB=pretrain", "ROLLCALL_TENANT=ml", "POD_NAME=pretrain-0-x7k2p",
        "POD_NAMESPACE=ml", f"POD_UID={uid}", BUILD / "tests" / "ranks", "-n", "4", "--keep-going", "--",
        BUILD / "tests" / "one_rank_stops_calling"), env=server.environment)
    event, = wait_for(lambda: [event for event in server.list("events", "--namespace=ml")
                               if event["reason"] == "JobHangs"])
    assert event["involvedObject"]["name"] == "pretrain-0-x7k2p"
    assert "rank 3" in event["message"]
    described = server.must("describe", "pod", "pretrain-0-x7k2p", "--namespace=ml")
    assert re.search(r"Warning\s+JobHangs\s.*\srollcall\s.*rank 3", described), described


def test_the_account_of_the_daemon_may_create_events_and_nothing_else(server, release):
    def may(verb, kind, account="daemon"):
        return server.kubectl("auth", "can-i", verb, kind, "--all-namespaces",
                              f"--as=system:serviceaccount:rollcall:rollcall-{account}").stdout.strip() == "yes"

    assert may("create", "events")
    for verb, kind in (("list", "events"), ("get", "pods"), ("patch", "nodes"), ("get", "secrets"), ("create", "pods")):
        assert not may(verb, kind), (verb, kind)
    for account in ("agent", "webhook", "viewer", "operator"):
        assert not may("create", "events", account) and not may("get", "pods", account)


# As kubectl; but there is no kubelet, so `exec` runs the command of the pod on this machine.
KUBECTL_WITH_EXEC = """#!/bin/sh
[ "$1" = exec ] || exec {kubectl} "$@"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


def test_diagnose_looks_into_the_pods_that_the_api_server_names(server, tmp_path):
    def pod(number, phase):
        name = f"unprepared-{number}"
        server.create({"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": name, "namespace": "plain", "labels": {"app": "unprepared"}},
            "spec": {"containers": [{"name": "job", "image": "registry.example/train:1"}]}})
        made = server.get("pods", name, "plain")
        path = f"/api/v1/namespaces/plain/pods/{name}/status"
        server.must("replace", f"--raw={path}", "--filename=-", input=json.dumps({**made, "status": {"phase": phase}}))

    pod(0, "Running")
    pod(1, "Pending")
    (tmp_path / "kubectl").write_text(KUBECTL_WITH_EXEC.format(kubectl=TOOLS / "kubectl"))
    (tmp_path / "kubectl").chmod(0o755)
    server.start("unprepared", *server.inside(
        "env", f"LD_LIBRARY_PATH={BUILD / 'sim'}", "ROLLCALL_JOB=unprepared", BUILD / "tests" / "ranks", "-n", "4",
        "--keep-going", "--", BUILD / "tests" / "one_rank_stops_calling"), env=server.environment)

    def look():
        done = server.run("env", f"PATH={tmp_path}:{server.environment['PATH']}", ROLLCALL, "diagnose",
                          "--kubernetes=plain/app=unprepared", "unprepared")
        return done if "unprepared-1: the pod does not run: Pending" in done.stdout and done.returncode != 0 else None
    text = wait_for(look).stdout
    assert "unprepared-0: " not in text, text  # it has been looked into
