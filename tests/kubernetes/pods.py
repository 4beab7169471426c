# SPDX-License-Identifier: Apache-2.0
"""Makes many different pods, the same ones in each run."""
import copy
import random

from conftest import MANIFESTS, load

NAMES = ["train", "main", "worker", "proxy", "logs", "vllm", "exporter"]
ENV = [{"name": "LD_PRELOAD", "value": "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"},
       {"name": "ROLLCALL_JOB", "value": "mine"}, {"name": "NCCL_DEBUG", "value": "INFO"},
       {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
       {"name": "ROLLCALL_TENANT", "value": "somebody-else"}, {"name": "ROLLCALL", "value": "0"},
       {"name": "LD_PRELOAD", "value": "/opt/librollcall.so"},
       {"name": "ROLLCALL_TENANT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]
MOUNTS = ["/data", "/dev/shm", "/etc/ssl/certs", "/etc", "/etc/ld.so.preload", "/rollcall",
          "/rollcall/lib", "/rollcall-data", "/", "/rollcall/segments/x", "/data/sub/", "//etc",
          "/etc/.", "etc", "/etc/./ld.so.preload", "/etc/../etc", "/rollcall//lib", "/x/.."]
GPUS = [{"nvidia.com/gpu": "8"}, {"nvidia.com/gpu": 1}, {"nvidia.com/mig-1g.10gb": "2"},
        {"nvidia.com/gpu.shared": "1"}, {"nvidia.com/gpu": "0"}, {"amd.com/gpu": "4"},
        {"cpu": "2"}, {}, None]


def make_container(choose, name):
    container = {"name": name, "image": f"registry.example/{name}:1"}
    limits = choose.choice(GPUS)
    if limits is not None:
        container["resources"] = {"limits": dict(limits)}
    env = choose.sample(ENV, choose.choice([0, 0, 1, 2, 3]))
    env = list({variable["name"]: variable for variable in env}.values())
    if env or choose.random() < 0.1:
        container["env"] = copy.deepcopy(env)
    mounts = choose.sample(MOUNTS, choose.choice([0, 0, 0, 1, 2]))
    if mounts:
        container["volumeMounts"] = [{"name": "data", "mountPath": path} for path in mounts]
    return container


def make_pod(seed):
    choose = random.Random(seed)
    kinds = sorted(path.stem for path in MANIFESTS.glob("*.yaml"))
    pod = load(choose.choice(kinds))
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["namespace"] = choose.choice(["ml", "research", "team-a"])
    if choose.random() < 0.2:
        del metadata["labels"]
    names = choose.sample(NAMES, choose.randint(1, 4))
    spec["containers"] = [make_container(choose, name) for name in names]
    spec["volumes"] = [{"name": "data", "emptyDir": {}}]
    annotations = metadata.setdefault("annotations", {})
    if choose.random() < 0.2:
        annotations["rollcall/containers"] = choose.choice(["*", "", names[0], f" {names[-1]} , nobody"])
    if choose.random() < 0.1:
        annotations["rollcall/inject"] = choose.choice(["false", "true"])
    if choose.random() < 0.2:
        annotations["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"] = "data"
    if not annotations and choose.random() < 0.5:
        del metadata["annotations"]
    if choose.random() < 0.3:
        spec["initContainers"] = [{"name": "fetch", "image": "registry.example/fetch:1"}]
    if choose.random() < 0.3:
        spec["securityContext"] = {"runAsUser": choose.choice([0, 1000]), "fsGroup": 1000}
    if choose.random() < 0.05:
        spec["os"] = {"name": choose.choice(["windows", "linux"])}
    if choose.random() < 0.05:
        spec["nodeSelector"] = {"kubernetes.io/os": choose.choice(["windows", "linux"])}
    if choose.random() < 0.05:
        spec["volumes"].append({"name": choose.choice(["rollcall-library", "rollcall-segments"]),
                                "emptyDir": {}})
    return pod


PODS = [make_pod(seed) for seed in range(200)]
