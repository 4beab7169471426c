# SPDX-License-Identifier: Apache-2.0
"""A pod of Kubernetes, imitated by namespaces: what `rollcall webhook` answers for it is done as the API
server, the kubelet and the container runtime do it. The agent runs as the chart's DaemonSet does."""
import base64
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import tempfile
import urllib.request

import pytest
from conftest import BUILD, CLONE, ROLLCALL, Service, reports_in, rollcall, wait_for
from signing_keys import SigningKey, key_set
from test_host_agent import Host, can_unshare

NODE = "node-7"
# As the chart's DaemonSet: root with two capabilities, all others dropped.
AS_THE_DAEMON_SET = ["setpriv", "--no-new-privs", "--inh-caps=-all",
                     "--bounding-set=-all,+sys_ptrace,+dac_read_search"]
AGENT, VIEWER = (f"system:serviceaccount:rollcall:rollcall-{name}" for name in ("agent", "viewer"))

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not can_unshare(),
    reason="needs root and the right to make pid and mount namespaces")


class Webhook:
    """The real webhook."""

    def __init__(self, pki):
        self.service = Service([ROLLCALL, "webhook", "--listen=127.0.0.1:0", "--image=rollcall:1",
                                f"--tls-cert={pki}/daemon.crt", f"--tls-key={pki}/daemon.key"])
        self.port = self.service.read_until(r"webhook listens on port (\d+)").group(1)
        self.context = ssl.create_default_context(cafile=f"{pki}/ca.crt")

    def mutate(self, pod):
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "operation": "CREATE", "namespace": pod["metadata"]["namespace"],
            "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": pod}}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}/mutate?timeout=5s",
                                         data=json.dumps(review).encode())
        with urllib.request.urlopen(request, context=self.context, timeout=120) as answer:
            response = json.load(answer)["response"]
        assert response["allowed"]
        return apply_patch(pod, json.loads(base64.b64decode(response["patch"])))


def apply_patch(pod, patch):
    """The two operations of JSON Patch that the webhook uses."""
    pod = json.loads(json.dumps(pod))
    for operation in patch:
        *path, last = [part.replace("~1", "/").replace("~0", "~")
                       for part in operation["path"].split("/")[1:]]
        place = pod
        for part in path:
            place = place[int(part) if isinstance(place, list) else part]
        if isinstance(place, dict):
            place[last] = operation["value"]
        elif operation["op"] == "replace":
            place[int(last)] = operation["value"]
        else:
            place.insert(len(place) if last == "-" else int(last), operation["value"])
    return pod


class Pod:
    """What kubelet and runtime make of the pod: volumes, the init container, then the container, each
    with a root, pids, a network, a hostname and 64 MiB of /dev/shm of its own."""

    HOST_FOLDERS = ["bin", "lib", "lib64", "opt", "sbin", "usr", str(CLONE).lstrip("/")]

    def __init__(self, host, pod, name):
        self.host, self.pod, self.name = host, pod, name
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pod-", dir=host.folder))
        self.folder.chmod(0o755)
        self.volumes = {volume["name"]: volume["emptyDir"] for volume in pod["spec"]["volumes"]}
        for volume in self.volumes:
            (self.folder / volume).mkdir()
            (self.folder / volume).chmod(0o777)
        memory = [f"mount -t tmpfs -o size=256m,mode=777 tmpfs {self.folder / volume}"
                  for volume, about in self.volumes.items() if about.get("medium") == "Memory"]
        subprocess.run(host.command("sh", "-ec", "\n".join(memory)), check=True)

    def variables(self, container):
        """As the kubelet fills them in."""
        fields = {"spec.nodeName": NODE, "metadata.name": self.name,
                  "metadata.namespace": self.pod["metadata"]["namespace"]}
        values = {}
        for variable in container.get("env", []):
            if "value" in variable:
                value = re.sub(r"\$\((\w+)\)", lambda m: values.get(m[1], m[0]), variable["value"])
            else:
                value = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
            values[variable["name"]] = value
        return values

    def command(self, container, *command, user=1000, with_variables=True, own_network=True):
        root = pathlib.Path(tempfile.mkdtemp(prefix="root-", dir=self.folder))
        root.chmod(0o755)
        lines = [f"mount -t tmpfs -o mode=755 tmpfs {root}"]
        for folder in ["dev", "etc", "proc", "tmp", *self.HOST_FOLDERS]:
            lines.append(f"mkdir -p {root}/{folder}")
        lines += [f"mount --rbind /{folder} {root}/{folder}" for folder in self.HOST_FOLDERS]
        lines += [f"mount -t proc proc {root}/proc",
                  f"mount -t tmpfs -o mode=755 tmpfs {root}/dev",
                  f"for d in null zero urandom; do touch {root}/dev/$d; mount --bind /dev/$d {root}/dev/$d; done",
                  f"mkdir {root}/dev/shm",
                  f"mount -t tmpfs -o size=64m,mode=1777 tmpfs {root}/dev/shm",
                  f"chmod 1777 {root}/tmp",
                  f"cp /etc/ld.so.cache /etc/passwd /etc/group /etc/nsswitch.conf {root}/etc",
                  f"hostname {self.name}"]
        for mount in container["volumeMounts"]:
            source = self.folder / mount["name"] / mount.get("subPath", "")
            target = f"{root}{mount['mountPath']}"
            # The kubelet makes a folder in the place of a subPath that is missing.
            lines += [f"[ -e {source} ] || mkdir {source}",
                      f"if [ -d {source} ]; then mkdir -p {target}; "
                      f"else mkdir -p $(dirname {target}); touch {target}; fi",
                      f"mount --bind {source} {target}"]
            if mount.get("readOnly"):
                lines.append(f"mount -o remount,bind,ro {target}")
        # As runtimes do: with chroot, /proc/PID/maps would show the host's paths.
        lines += [f"cd {root}", "mkdir host", "pivot_root . host",
                  "exec chroot . sh -ec 'umount -l /host; rmdir /host; exec \"$@\"' sh \"$@\""]
        given = {"PATH": "/usr/bin:/bin", **(self.variables(container) if with_variables else {})}
        return self.host.command(
            "unshare", "--pid", "--mount", *(["--net"] if own_network else []), "--uts", "--ipc", "--fork",
            "--kill-child", "--",
            "sh", "-ec", "\n".join(lines), "sh", "setpriv", f"--reuid={user}", f"--regid={user}",
            "--clear-groups", "--", "env", "-i", *(f"{k}={v}" for k, v in given.items()), *command)

    def install(self):
        """The init container. The image's library is that of the build."""
        installer = self.pod["spec"]["initContainers"][0]
        program, *arguments = installer["command"]
        assert program == "/usr/bin/rollcall"
        return subprocess.run(self.command(installer, ROLLCALL, *arguments, user=65532),
                              capture_output=True, text=True, timeout=120, check=False)

    def start(self, *command, **options):
        container = self.pod["spec"]["containers"][0]
        # The NCCL of the image.
        service = Service(self.command(container, "env", f"LD_LIBRARY_PATH={BUILD / 'sim'}", *command, **options))
        self.host.services.append(service)
        return service

    def run(self, *command, **options):
        container = self.pod["spec"]["containers"][0]
        return subprocess.run(self.command(container, *command, **options), capture_output=True, text=True,
                              timeout=120, check=False)


def pod_of_a_jobset(**container):
    """As JobSet's controller makes it."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"generateName": "pretrain-workers-0-3-", "namespace": "ml",
                         "labels": {"jobset.sigs.k8s.io/jobset-name": "pretrain",
                                    "jobset.sigs.k8s.io/restart-attempt": "2",
                                    "batch.kubernetes.io/job-name": "pretrain-workers-0"}},
            "spec": {"containers": [{"name": "train", "image": "pytorch",
                                     "resources": {"limits": {"nvidia.com/gpu": "4"}}, **container}]}}


@pytest.fixture
def host():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rollcall-node-", dir="/tmp"))
    folder.chmod(0o755)
    made = Host(folder)
    yield made
    made.end()
    shutil.rmtree(folder)


@pytest.fixture
def webhook(pki):
    made = Webhook(pki)
    yield made
    made.service.kill()


@pytest.fixture
def make_pod(host, webhook):
    def make(name="pretrain-workers-0-3-x7k2p", **container):
        return Pod(host, webhook.mutate(pod_of_a_jobset(**container)), name)
    return make


@pytest.fixture
def cluster(start_tls_daemon, host, pki, tmp_path):
    """The daemon with the chart's grants, and the agent of the node."""
    key = SigningKey(tmp_path, "api-server")
    (tmp_path / "jwks.json").write_text(key_set(key))
    daemon = start_tls_daemon(f"--jwks={tmp_path / 'jwks.json'}", f"--grant=agent=sub:{AGENT},tenant=*",
                              f"--grant=viewer=sub:{VIEWER},tenant=*")
    for account, name in ((AGENT, "agent-token"), (VIEWER, "viewer-token")):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text(key.token(account, node=NODE))
    (host.folder / "agent").mkdir()
    daemon.agent = host.start(
        *AS_THE_DAEMON_SET, "env", f"NODE_NAME={NODE}", BUILD / "bin" / "rollcall-agent", "--config=none",
        f"--daemon={daemon.address}", f"--tls-ca={pki}/ca.crt", f"--token-file={tmp_path / 'agent-token'}",
        f"--host={NODE}",
        "--stacks=on", "--host-facts=on", f"--dir={host.folder / 'agent'}")
    daemon.ask = lambda *arguments: rollcall(*arguments, f"--daemon={daemon.address}", f"--tls-ca={pki}/ca.crt",
                                             f"--token-file={tmp_path / 'viewer-token'}")
    return daemon


def wait_for_incident(tmp_path, seconds=40):
    report, = wait_for(lambda: reports_in(tmp_path / "reports"), seconds)
    return json.loads((report / "incident.json").read_text())


HANGING = [BUILD / "tests" / "ranks", "-n", "4", "--keep-going", "--", BUILD / "tests" / "one_rank_stops_calling"]


def check_incident(incident, job="pretrain", attempt=2):
    assert (incident["tenant"], incident["job"]) == ("ml", job)
    assert incident["attempt"] == attempt
    verdict = incident["verdicts"][0]
    assert verdict["cause"] == "missing_rank"
    culprit, = verdict["culprits"]
    assert (culprit["rank"], culprit["host"]) == (3, NODE)
    assert culprit["pod"] == "ml/pretrain-workers-0-3-x7k2p"
    assert culprit["node"] == NODE
    return verdict


def test_a_hang_in_a_pod_is_named_with_pod_node_job_and_attempt(cluster, make_pod, tmp_path):
    pod = make_pod()
    installed = pod.install()
    assert installed.returncode == 0, installed.stderr
    pod.start(*HANGING)
    verdict = check_incident(wait_for_incident(tmp_path))
    assert "is in `Validate`" in verdict["summary"], "its stack was taken"
    assert "ml/pretrain attempt 2: hung" in cluster.ask("status", "--all").stdout
    inside = cluster_files(pod.host)
    assert [path for path in inside if path.startswith("/rollcall/segments/train/")]
    assert not [path for path in inside if path.startswith("/dev/shm/rollcall")], "that is NCCL's"


def cluster_files(host):
    """The segments that the processes of the node have mapped, by their path in the container."""
    listing = subprocess.run(host.command("sh", "-c", "cat /proc/[0-9]*/maps"), capture_output=True, text=True,
                             check=False).stdout
    return set(re.findall(r"(/\S+\.seg)$", listing, re.M))


@pytest.mark.long
def test_ranks_without_the_containers_environment_are_of_the_same_job(cluster, make_pod, tmp_path):
    """sshd of an MPI Operator's worker starts ranks in this way."""
    pod = make_pod()
    assert pod.install().returncode == 0
    pod.start(*HANGING, with_variables=False)
    check_incident(wait_for_incident(tmp_path))
    assert [path for path in cluster_files(pod.host) if path.startswith("/rollcall/segments/shared/")]


def test_a_pod_in_which_no_rank_has_called_nccl_yet_is_seen(cluster, make_pod):
    """The library comes by /etc/ld.so.preload, so LD_PRELOAD does not name it."""
    pod = make_pod()
    assert pod.install().returncode == 0
    pod.start("env", "RANK=0", "WORLD_SIZE=2", "sleep", "100")
    wait_for(lambda: "pretrain" in cluster.ask("status", "--all").stdout)


@pytest.mark.long
def test_a_sidecar_of_the_jobs_user_explains_its_hang(start_tls_daemon, make_pod, pki, tmp_path):
    """deploy/kubernetes/sidecar.yaml: one user and one pid namespace, no capability, no DaemonSet."""
    account = "system:serviceaccount:ml:default"
    key = SigningKey(tmp_path, "api-server")
    (tmp_path / "jwks.json").write_text(key_set(key))
    daemon = start_tls_daemon(f"--jwks={tmp_path / 'jwks.json'}", f"--grant=agent=sub:{account},tenant=ml,host=*")
    pod = make_pod(env=[{"name": "ROLLCALL_DIR", "value": "/rollcall/segments/job"}])
    assert pod.install().returncode == 0
    files = pod.folder / "rollcall-library"  # a folder that the container sees
    shutil.copy(pki / "ca.crt", files)
    (files / "token").touch(mode=0o600)
    os.chown(files / "token", 1000, 1000)
    (files / "token").write_text(key.token(account, node=NODE))
    agent = (f"{BUILD}/bin/rollcall-agent --config=none --daemon={daemon.address} --tls-ca=/rollcall/lib/ca.crt "
             f"--token-file=/rollcall/lib/token --scope=directory --dir=/rollcall/segments/job --host=$POD_NAME")
    pod.start("sh", "-c", f"{agent} & exec \"$@\"", "sh", *HANGING, own_network=False)
    incident = wait_for_incident(tmp_path)
    assert (incident["tenant"], incident["job"], incident["attempt"]) == ("ml", "pretrain", 2)
    culprit, = incident["verdicts"][0]["culprits"]
    assert (culprit["rank"], culprit["host"]) == (3, pod.name)
    assert "is in `Validate`" in incident["verdicts"][0]["summary"], "its stack was taken"


def other_library():
    for path in ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib/x86_64-linux-gnu/libz.so.1"):
        if os.path.exists(path):
            return path
    pytest.skip("no other library to preload")


def test_a_preload_of_the_image_stays_and_the_library_is_loaded_beside_it(make_pod):
    other = other_library()
    pod = make_pod(env=[{"name": "LD_PRELOAD", "value": other}])
    assert pod.install().returncode == 0
    maps = pod.run("cat", "/proc/self/maps").stdout
    assert os.path.basename(other) in maps
    assert "/rollcall/lib/librollcall.so" in maps


def test_programs_that_change_their_user_run_with_it(make_pod):
    """The loader trusts /etc/ld.so.preload for setuid programs too."""
    program = "/usr/bin/su"
    if not os.access(program, os.X_OK) or not os.stat(program).st_mode & 0o4000:
        pytest.skip("no setuid su here")
    pod = make_pod()
    assert pod.install().returncode == 0
    done = pod.run(program, "--version")
    assert (done.returncode, done.stderr) == (0, ""), done


def test_a_static_program_runs_with_it(make_pod, tmp_path):
    pod = make_pod()
    assert pod.install().returncode == 0
    source = tmp_path / "static.c"
    source.write_text("#include <stdio.h>\nint main(void) { puts(\"runs\"); }\n")
    program = pod.folder / "rollcall-library" / "static"  # a folder that the container sees
    if subprocess.run(["cc", "-static", "-o", program, source], capture_output=True, check=False).returncode != 0:
        pytest.skip("no static libc here")
    assert pod.run("/rollcall/lib/static").stdout == "runs\n"


def test_a_pod_starts_without_the_library_if_it_cannot_be_installed(make_pod):
    pod = make_pod()
    (pod.folder / "rollcall-library" / "librollcall.so").mkdir()  # it cannot be replaced by a file
    installed = pod.install()
    assert installed.returncode == 0
    assert "cannot replace /rollcall/lib/librollcall.so: Is a directory" in installed.stderr
    done = pod.run("sh", "-c", "echo runs; cat /proc/self/maps")
    assert done.stdout.startswith("runs\n") and "librollcall" not in done.stdout
    assert done.stderr == ""


def test_a_pod_starts_if_the_installer_has_left_nothing_at_all(make_pod):
    """Kubernetes then mounts an empty folder as /etc/ld.so.preload."""
    pod = make_pod()
    done = pod.run("sh", "-c", "echo runs; test -d /etc/ld.so.preload && echo folder")
    assert done.stdout == "runs\nfolder\n", done
