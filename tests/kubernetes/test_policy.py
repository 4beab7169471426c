# SPDX-License-Identifier: Apache-2.0
"""The MutatingAdmissionPolicy of the chart: its expressions, evaluated by a library of CEL, change the
same pods in the same way as the webhook.

Plain CEL has no Object{} and JSONPatch{}. So Object.spec.containers{name: x} becomes the map {'name': x}
here."""
import json
import pathlib
import re

import cel
import jsonpatch
import kubernetes_validate
import pytest
from conftest import POLICY_API, check, find, load, render
from pods import PODS

pytestmark = pytest.mark.long
SETTINGS = [{}, {"tenant": "none"}, {"tenant": "ml-platform", "segmentsSize": "1Gi",
                                     "gpuResources": ["nvidia.com/gpu", "amd.com/*"]}]


def policy_of(settings):
    documents = render({"injection": {"mode": "policy", **settings}}, version="1.37")
    return find(documents, "MutatingAdmissionPolicy")["spec"]


def as_plain_cel(expression):
    """Object types as maps, whose keys are texts."""
    plain = re.sub(r"\b(Object(\.\w+)*|JSONPatch)\s*\{", "{", expression)
    return re.sub(r"([{,]\s*)([a-zA-Z]\w*)(\s*):(?!:)", r"\1'\2'\3:", plain)


def evaluate(expression, pod, namespace, variables):
    context = cel.Context()
    context.add_variable("object", pod)
    context.add_variable("request", {"namespace": namespace})
    context.add_variable("variables", variables)
    context.add_function("join", lambda texts, by: by.join(texts))
    context.add_function("indexOf", lambda elements, wanted: list(elements).index(wanted))
    return cel.evaluate(as_plain_cel(expression), context)


def variables_of(policy, pod, namespace):
    variables = {}
    for variable in policy["variables"]:
        assert "Object" not in variable["expression"], "the API server knows this type in mutations alone"
        variables[variable["name"]] = evaluate(variable["expression"], pod, namespace, variables)
    return variables


def apply_policy(policy, pod):
    namespace = pod["metadata"]["namespace"]
    variables = variables_of(policy, pod, namespace)
    mutation, = policy["mutations"]
    assert mutation["patchType"] == "JSONPatch"
    return jsonpatch.apply_patch(pod, evaluate(mutation["jsonPatch"]["expression"], pod, namespace, variables))


@pytest.mark.parametrize("settings", SETTINGS, ids=["default", "no_tenants", "other_settings"])
def test_the_policy_makes_the_same_pods_as_the_webhook(start_webhook, settings):
    webhook = start_webhook({"injection": {"mode": "webhook", **settings}})
    policy = policy_of(settings)
    changed = 0
    for number, pod in enumerate(PODS):
        if pod["metadata"].get("labels", {}).get("rollcall/inject") == "false":
            continue  # the policy's objectSelector
        by_policy = apply_policy(policy, pod)
        assert by_policy == webhook.mutate(pod), f"pod {number}"
        changed += by_policy != pod
    assert changed > 30


def test_the_policy_changes_a_pod_once():
    policy = policy_of({})
    for number, pod in enumerate(PODS):
        once = apply_policy(policy, pod)
        assert apply_policy(policy, once) == once, f"pod {number}"


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_the_policys_pods_and_the_policy_itself_are_valid(version):
    documents = render({"injection": {"mode": "policy"}}, version=version)
    for kind in ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"):
        check(find(documents, kind), version)
    policy = find(documents, "MutatingAdmissionPolicy")["spec"]
    assert policy["failurePolicy"] == "Ignore"
    pod = apply_policy(policy, load("leaderworkerset"))
    assert pod["spec"]["initContainers"], "the pod is changed"
    check(pod, version)


def test_the_policy_comes_only_when_it_is_asked_for():
    """As long as no real API server has taken it."""
    for version, apis in (("1.35", []), ("1.37", [POLICY_API])):
        kinds = {d["kind"] for d in render(version=version, apis=apis)}
        assert "MutatingAdmissionPolicy" not in kinds and "MutatingWebhookConfiguration" in kinds
    kinds = {d["kind"] for d in render({"injection": {"mode": "policy"}}, version="1.37")}
    assert "MutatingAdmissionPolicy" in kinds and "MutatingWebhookConfiguration" not in kinds


def test_a_path_that_cel_cannot_resolve_leaves_the_container_alone():
    policy = policy_of({})
    for path, is_left in (("/data", False), ("/data/.cache", False), ("/data/", False), ("/a..b", False),
                          ("//data", True), ("/data/./x", True), ("/data/..", True), ("data", True)):
        pod = load("job")
        pod["metadata"]["namespace"] = "ml"
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": path}]
        assert (apply_policy(policy, pod) == pod) == is_left, path


def test_the_policy_leaves_pods_for_another_cpu_alone():
    pod = load("job")
    pod["metadata"]["namespace"] = "ml"
    pod["spec"]["nodeSelector"] = {"kubernetes.io/arch": "arm64"}
    assert apply_policy(policy_of({}), pod) == pod
    settings = {"imageArch": "arm64", "installer": {"cpu": "1", "memory": "256Mi"}}
    after = apply_policy(policy_of(settings), pod)
    size = {"cpu": "1", "memory": "256Mi"}
    assert after["spec"]["initContainers"][0]["resources"] == {"limits": size, "requests": size}


# --- Atomic fields: an apply configuration that sets one is refused by the API server, for each pod.

def definitions(version):
    folder = pathlib.Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
    return json.loads((folder / f"v{version}.0-local" / "_definitions.json").read_text())["$defs"]


def resolved(schema, known):
    """The schema behind its reference, with what stands beside that."""
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", []) if "$ref" in part), None)
    if reference is None:
        return schema
    return {**known[reference.rsplit("/", 1)[-1]], **schema}


def atomics_in(applied, schema, known, path=""):
    schema = resolved(schema, known)
    if "atomic" in (schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-map-type")):
        return [path]
    if isinstance(applied, list):
        # Without a type, a list is atomic.
        if "x-kubernetes-list-type" not in schema and "x-kubernetes-patch-merge-key" not in schema:
            return [path]
        return [found for element in applied for found in atomics_in(element, schema["items"], known, path)]
    if not isinstance(applied, dict):
        return []
    return [found for name, value in applied.items()
            for found in atomics_in(value, schema.get("properties", {}).get(name, {}), known, f"{path}/{name}")]


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_no_apply_configuration_of_the_chart_sets_an_atomic_field(version):
    known = definitions(version)
    pod_schema = known["io.k8s.api.core.v1.Pod"]
    refused = {"spec": {"initContainers": [{
        "name": "a", "command": ["b"], "securityContext": {"capabilities": {"drop": ["ALL"]}},
        "env": [{"name": "c", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"limits": {"cpu": "1"}}}]}}
    assert atomics_in(refused, pod_schema, known) == [
        "/spec/initContainers/command", "/spec/initContainers/securityContext/capabilities/drop",
        "/spec/initContainers/env/valueFrom/fieldRef"], "the check itself finds them"
    pod = load("leaderworkerset")
    policy = policy_of({})
    values = variables_of(policy, pod, "ml")
    for mutation in policy["mutations"]:
        if mutation["patchType"] == "ApplyConfiguration":
            applied = evaluate(mutation["applyConfiguration"]["expression"], pod, "ml", values)
            assert atomics_in(applied, pod_schema, known) == []
