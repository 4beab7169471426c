# SPDX-License-Identifier: Apache-2.0
"""The real webhook, with the chart's flags and certificates, asked as the API server asks."""
import concurrent.futures
import contextlib
import copy
import json
import os
import pathlib
import re
import select
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest
from conftest import MANIFESTS, ROLLCALL, ROOT, Webhook, check, load, render, variables, webhook_arguments, write_secret
from pods import PODS

VERSIONS = ["1.28", "1.32", "1.36", "1.37"]

# Of each manifest: the job, and the variables with its attempt.
JOBS = {
    "jobset": ("pretrain", {"JOBSET_RESTART_ATTEMPT": "2"}),
    "trainer_v2": ("llama", {"JOBSET_RESTART_ATTEMPT": "0"}),
    "pytorchjob_v1": ("bert", {}),
    "mpijob_worker": ("nccl-tests", {}),
    "volcano": ("gpt", {"VOLCANO_JOB_VERSION": "1"}),
    "rayjob": ("tune", {}),
    "raycluster": ("shared", {}),
    "leaderworkerset": ("serve-$(ROLLCALL_GROUP)", {}),
    "kueue_group": ("sweep", {}),
    "job": ("finetune", {}),
    "pod": ("$(POD_NAME)", {}),
    "named_pod": ("ablation-7", {"ROLLCALL_ATTEMPT": "4"}),
}
WITHOUT_GPU = ["mpijob_launcher"]


def test_each_manifest_has_a_row_here_and_each_system_a_manifest():
    manifests = {path.stem for path in MANIFESTS.glob("*.yaml")}
    assert manifests == {*JOBS, *WITHOUT_GPU}
    table = (ROOT / "webhook" / "job_names.cc").read_text()
    names = re.findall(r'"([a-z0-9.-]+/[a-z-]+)"', table)
    assert len(names) > 8
    marks = {mark for name in manifests
             for part in ("labels", "annotations")
             for mark in load(name)["metadata"].get(part, {})}
    assert set(names) <= marks


@pytest.mark.parametrize("name", JOBS)
def test_a_pod_learns_its_job_and_attempt(webhook, name):
    pod = load(name)
    for version in VERSIONS:
        check(pod, version)
    after = webhook.mutate(pod)
    for version in VERSIONS:
        check(after, version)
    job, attempt = JOBS[name]
    got = variables(after)
    assert got["ROLLCALL_JOB"] == job
    assert {k: v for k, v in got.items() if "ATTEMPT" in k or "VERSION" in k} == attempt
    assert got["ROLLCALL_TENANT"] == "ml"
    assert got["NODE_NAME"] == "<spec.nodeName>" and got["POD_NAME"] == "<metadata.name>"
    order = list(got)
    for name_before in re.findall(r"\$\((\w+)\)", got["ROLLCALL_JOB"]):
        assert order.index(name_before) < order.index("ROLLCALL_JOB"), "else the node does not fill it in"


@pytest.mark.parametrize("name", WITHOUT_GPU)
def test_a_pod_without_a_gpu_stays_as_it_is(webhook, name):
    assert "patch" not in webhook.review(load(name))


def without_injection(pod):
    """The pod without all that the webhook adds."""
    pod = copy.deepcopy(pod)
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations", {})
    if annotations.pop("rollcall/injected", None) is None:
        return pod
    evict = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
    annotations[evict] = annotations[evict].removesuffix("rollcall-library,rollcall-segments").rstrip(",")
    if not annotations[evict]:
        del annotations[evict]
    spec["volumes"] = [v for v in spec["volumes"] if not v["name"].startswith("rollcall-")]
    spec["initContainers"] = [c for c in spec["initContainers"] if c["name"] != "rollcall-install"]
    for container in spec["containers"]:
        mounts = container.get("volumeMounts", [])
        if not any(mount["name"] == "rollcall-library" for mount in mounts):
            continue
        container["volumeMounts"] = [m for m in mounts if not m["name"].startswith("rollcall-")]
        container["env"] = container["env"][:-count_added(container)]
    return pod


def count_added(container):
    """How many variables at the end of the list are the webhook's."""
    names = ["NODE_NAME", "POD_NAME", "POD_NAMESPACE", "ROLLCALL_GROUP", "ROLLCALL_TENANT", "ROLLCALL_JOB",
             "JOBSET_RESTART_ATTEMPT", "VOLCANO_JOB_VERSION", "ROLLCALL_ATTEMPT", "ROLLCALL_DIR",
             "ROLLCALL_PRELOAD"]
    first = next(i for i, v in enumerate(container["env"]) if v["name"] == "NODE_NAME")
    assert all(variable["name"] in names for variable in container["env"][first:])
    return len(container["env"]) - first


def normalized(pod):
    """Empty lists and maps are as good as none, and the tenant is not the author's to choose."""
    pod = copy.deepcopy(pod)
    for container in pod["spec"]["containers"]:
        for variable in container.get("env", []):
            if variable["name"] == "ROLLCALL_TENANT" and "value" in variable:
                variable["value"] = "any"
        for key in ("env", "volumeMounts"):
            if not container.get(key):
                container.pop(key, None)
    for tree, key in ((pod["spec"], "initContainers"), (pod["metadata"], "annotations")):
        if not tree.get(key):
            tree.pop(key, None)
    return pod


def test_200_pods_are_admitted_unharmed_and_the_second_time_unchanged(webhook):
    injected = 0
    for number, pod in enumerate(PODS):
        after = webhook.mutate(pod)
        assert normalized(without_injection(after)) == normalized(pod), f"pod {number}"
        assert "patch" not in webhook.review(after), f"pod {number} is patched twice"
        if after == pod:
            continue
        injected += 1
        check(after, "1.37")
        for container in after["spec"]["containers"]:
            paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
            assert len(paths) == len(set(paths)), "the API server would refuse this pod"
            names = [variable["name"] for variable in container.get("env", [])]
            assert len(names) == len(set(names))
    assert 50 < injected < 150, "the pods must be of both kinds"


def test_what_is_no_creation_of_a_pod_stays_as_it_is(webhook):
    pod = load("job")
    for change in ({"operation": "UPDATE"}, {"operation": "DELETE"}, {"subResource": "ephemeralcontainers"},
                   {"kind": {"group": "batch", "version": "v1", "kind": "Job"}}):
        assert "patch" not in webhook.review(pod, **change)


@pytest.mark.parametrize("body, why", [
    (b"", "it is not JSON"),
    (b"{", "it is not JSON"),
    (b"\xff\xfe\x00", "it is not JSON"),
    (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}', "another kind or apiVersion"),
    (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "no request.uid"),
    (b"[" * 1_000_000, "nested deeper than 64 levels"),
])
def test_a_body_that_it_cannot_read_is_a_clear_error_and_allowed(webhook, body, why):
    status, text = webhook.post(body)
    assert status == 400
    response = json.loads(text)["response"]
    assert response["allowed"] is True
    assert why in response["status"]["message"]
    assert webhook.review(load("job"))["allowed"]


def test_a_pod_of_two_mebibytes_is_read_and_a_body_of_more_than_three_refused(webhook):
    pod = load("job")
    pod["metadata"]["annotations"]["notes"] = "x" * (2 << 20)
    assert "patch" in webhook.review(pod)
    # The answer comes before the body.
    with webhook.context.wrap_socket(socket.create_connection(("127.0.0.1", webhook.port), timeout=120),
                                     server_hostname="127.0.0.1") as connection:
        connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 3145729\r\n\r\n")
        assert b" 413 " in connection.recv(4096)
    assert webhook.review(load("job"))["allowed"]


def test_of_many_large_bodies_at_once_those_without_room_are_refused_and_the_others_answered(start_webhook):
    webhook = start_webhook()
    pod = load("job")
    pod["metadata"]["annotations"]["notes"] = "x" * (2 << 20)
    pod["x"] = [0] * 190_000

    def ask(_):
        try:
            return "patch" in webhook.review(pod)
        except (OSError, json.JSONDecodeError):  # refused before the whole body is sent
            return False

    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(ask, range(64)))
    print(f"{sum(answers)} of {len(answers)} answered in {time.monotonic() - begun:.1f} s")
    assert sum(answers) >= 5, "as many as have room at once"
    assert "patch" in webhook.review(pod), "and the next one"
    most = most_memory_mb(webhook.process.pid)
    print(f"at most {most} MB")
    assert most < 120, "of 512Mi"


def review_with(change):
    """A review of 500 containers, as `change` makes it."""
    pod = load("job")
    first, = pod["spec"]["containers"]
    pod["spec"]["containers"] = [{**first, "name": f"c{i}"} for i in range(500)]
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5", "operation": "CREATE", "namespace": "ml", "kind": {"kind": "Pod"}, "object": pod}}
    change(review["request"])
    return json.dumps(review)


LARGE = 2_800_000
BOMBS = {
    "a namespace for each container": review_with(lambda request: request.update(namespace="x" * LARGE)),
    "a job for each container": review_with(
        lambda request: request["object"]["metadata"]["annotations"].update({"rollcall/job": "x" * LARGE})),
    "an attempt for each container": review_with(
        lambda request: request["object"]["metadata"]["annotations"].update({"rollcall/attempt": "9" * LARGE})),
    "variables": review_with(lambda request: request["object"]["spec"]["containers"][0].update(
        env=[{"name": f"V{i}"} for i in range(90_000)])),
    "mounts": review_with(lambda request: request["object"]["spec"]["containers"][0].update(
        volumeMounts=[{"mountPath": "/x" * 8} for i in range(60_000)])),
    "a path of many parts": review_with(lambda request: request["object"]["spec"]["containers"][0].update(
        volumeMounts=[{"mountPath": "/" * LARGE}])),
    "resources": review_with(lambda request: request["object"]["spec"]["containers"][0].update(
        resources={"limits": {f"nvidia.com/gpu{i}": 0 for i in range(90_000)}})),
    "a name": '{"' + "x" * LARGE + '": 1}',
    "names": "{" + ",".join(f'"{i}":0' for i in range(250_000)) + "}",
    "one name": "{" + ",".join(['"kind":0'] * 250_000) + "}",
    "a number": '{"kind": ' + "9" * LARGE + "}",
    "a fraction": '{"kind": 0.' + "1" * LARGE + "e-9999}",
    "escapes": '{"kind": "' + "\\u00e9" * (LARGE // 6) + '"}',
    "empty objects": "[" + "{}," * (LARGE // 3) + "{}]",
    "levels": '{"kind":' * (LARGE // 8),
    "levels in a review": '{"request": {"uid": "705ab4f5", "object": ' + "[" * LARGE,
}


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def most_memory_mb(pid):
    return int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) // 1024


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_body_does_not_become_large(start_webhook, bomb):
    webhook = start_webhook()
    body = BOMBS[bomb].encode()
    assert len(body) < 3 << 20
    begun = cpu_seconds(webhook.process.pid)
    status, answer = webhook.post(body)
    took, most = cpu_seconds(webhook.process.pid) - begun, most_memory_mb(webhook.process.pid)
    print(f"{status}, {len(answer)} bytes, {took:.2f} s of a CPU, {most} MB")
    assert json.loads(answer)["response"]["allowed"] is True
    assert took < 5 and most < 120 and len(answer) < 4 * len(body) + (4 << 20)
    assert "patch" in webhook.review(load("job"))


@pytest.mark.parametrize("head", ["Content-Length: 104857600", "Transfer-Encoding: chunked",
                                  "Transfer-Encoding: chunked\r\nContent-Length: 10",
                                  "Content-Length: 99999999999999999999",
                                  "Content-Encoding: gzip\r\nContent-Length: 10"])
def test_a_body_that_stands_for_more_is_refused_before_it_comes(webhook, head):
    before = most_memory_mb(webhook.process.pid)
    with webhook.context.wrap_socket(socket.create_connection(("127.0.0.1", webhook.port), timeout=120),
                                     server_hostname="127.0.0.1") as connection:
        connection.sendall(f"POST /mutate HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode())
        with contextlib.suppress(OSError):  # it closes while this sends
            for _ in range(100):
                connection.sendall(b"100000\r\n" + b"[" * (1 << 20) + b"\r\n")
            assert re.match(rb"HTTP/1.1 (400|411|413|415|501) ", connection.recv(4096))
    assert most_memory_mb(webhook.process.pid) < before + 20
    assert webhook.review(load("job"))["allowed"]


def test_bodies_that_come_slowly_keep_nobody_waiting_and_end(webhook):
    """As many as it has connections, in TLS: a byte each second keeps none of them for long."""
    head = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n"
    slow = [webhook.context.wrap_socket(socket.create_connection(("127.0.0.1", webhook.port), timeout=120),
                                        server_hostname="127.0.0.1") for _ in range(64)]
    ended, begun = set(), time.monotonic()
    for connection in slow:
        connection.sendall(head)
    while len(ended) < len(slow):
        assert time.monotonic() - begun < 120, f"{len(slow) - len(ended)} are still there"
        for connection in set(slow) - ended:
            try:
                connection.sendall(b"[")
                connection.setblocking(False)
                if connection.recv(4096).startswith((b"", b"HTTP/1.1 ")):
                    ended.add(connection)
            except ssl.SSLWantReadError:
                connection.settimeout(10)
            except OSError:
                ended.add(connection)
        asked = time.monotonic()
        assert webhook.review(load("job"))["allowed"]
        assert time.monotonic() - asked < 8, "it waits for the slow ones"
        time.sleep(0.7)
    for connection in slow:
        connection.close()


def first_answer(connections, timeout=120):
    """The first bytes that the webhook sends to any of `connections`: it reads them in an order of its own."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        for connection in select.select(connections, [], [], 1)[0]:
            connection.setblocking(False)
            # TLS itself also sends: session tickets.
            with contextlib.suppress(ssl.SSLWantReadError):
                return connection.recv(4096)
    raise TimeoutError(f"none of {len(connections)} connections got an answer in {timeout} s")


def test_a_body_without_room_is_told_when_to_come_again(webhook):
    head = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n"
    with contextlib.ExitStack() as open_ones:
        connections = [open_ones.enter_context(webhook.context.wrap_socket(
            socket.create_connection(("127.0.0.1", webhook.port), timeout=120), server_hostname="127.0.0.1"))
            for _ in range(6)]
        for connection in connections:
            connection.sendall(head)
        answer = first_answer(connections)
    assert b" 503 " in answer and b"\r\nRetry-After: " in answer
    assert webhook.review(load("job"))["allowed"]


@pytest.mark.parametrize("containers", [500, 10_000])
def test_a_pod_of_many_containers_gets_its_answer_before_the_api_server_gives_up(webhook, containers):
    pod = load("job")
    first, = pod["spec"]["containers"]
    pod["spec"]["containers"] = [{**first, "name": f"c{i}"} for i in range(containers)]
    pod["metadata"].setdefault("annotations", {})["rollcall/containers"] = ",".join(
        f"c{i}" for i in range(containers))
    begun = cpu_seconds(webhook.process.pid)
    response = webhook.review(pod)
    assert cpu_seconds(webhook.process.pid) - begun < 5
    assert ("patch" in response) == (containers == 500)


def test_other_addresses_are_not_there(webhook):
    assert webhook.post(b"{}", path="/")[0] == 404
    assert webhook.post(b"{}", path="/mutate/x")[0] == 404


def test_clients_that_send_nothing_keep_nobody_waiting(webhook):
    """More of them than it has connections."""
    idle = [socket.create_connection(("127.0.0.1", webhook.port)) for _ in range(100)]
    begun = time.monotonic()
    assert webhook.review(load("job"))["allowed"]
    assert time.monotonic() - begun < 8, "it waits for them"
    for connection in idle:
        connection.close()


def test_without_tls_there_is_no_answer(webhook):
    with socket.create_connection(("127.0.0.1", webhook.port), timeout=120) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"this page speaks TLS" in connection.recv(4096)


def test_the_probes_of_the_chart_get_an_answer(webhook):
    with urllib.request.urlopen(f"{webhook.url}/healthz", context=webhook.context, timeout=120) as answer:
        assert answer.read() == b"ok\n"


def test_a_renewed_certificate_is_used_without_a_restart(tmp_path):
    old, new = (render({"injection": {"mode": "webhook"}}) for _ in range(2))
    tls = write_secret(old, "rollcall-webhook-tls", tmp_path / "tls")
    webhook = Webhook(webhook_arguments(old, tls), (tls / "ca.crt").read_text())
    try:
        assert webhook.review(load("job"))["allowed"]
        write_secret(new, "rollcall-webhook-tls", tls)
        webhook.context = ssl.create_default_context(cadata=(tls / "ca.crt").read_text())
        deadline = time.monotonic() + 90
        while True:
            try:
                assert webhook.review(load("job"))["allowed"]
                break
            except OSError:
                assert time.monotonic() < deadline, "the old certificate is still in use"
                time.sleep(0.3)
    finally:
        webhook.close()


def test_it_goes_on_for_some_seconds_after_sigterm(start_webhook):
    """Until the API server knows that the pod ends."""
    webhook = start_webhook()
    webhook.process.terminate()
    time.sleep(1)
    assert webhook.review(load("job"))["allowed"]
    assert webhook.process.wait(timeout=120) == 0


def test_a_start_without_a_certificate_says_so(tmp_path):
    done = subprocess.run([ROLLCALL, "webhook", "--image=x", f"--tls-cert={tmp_path}/none.crt",
                           f"--tls-key={tmp_path}/none.key"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert f"{tmp_path}/none.crt" in done.stderr


def test_the_log_names_the_pod_and_its_containers(start_webhook):
    webhook = start_webhook()
    webhook.review(load("job"))
    deadline = time.monotonic() + 90
    while not any("ml/job-*: the library goes into train" in line for line in webhook.lines):
        assert time.monotonic() < deadline, webhook.lines
        time.sleep(0.1)


def test_settings_of_the_chart_reach_the_pods(start_webhook):
    webhook = start_webhook({"injection": {"mode": "webhook", "tenant": "none", "segmentsSize": "1Gi",
                                           "gpuResources": ["amd.com/gpu"]},
                             "image": {"repository": "r.example/rc", "tag": "7", "pullPolicy": "Always"}})
    pod = load("job")
    assert "patch" not in webhook.review(pod)
    pod["spec"]["containers"][0]["resources"]["limits"] = {"amd.com/gpu": "8"}
    after = webhook.mutate(pod)
    assert variables(after)["ROLLCALL_JOB"] == "ml.finetune"
    assert "ROLLCALL_TENANT" not in variables(after)
    installer = after["spec"]["initContainers"][0]
    assert (installer["image"], installer["imagePullPolicy"]) == ("r.example/rc:7", "Always")
    segments = {"name": "rollcall-segments", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}
    assert segments in after["spec"]["volumes"]
