# SPDX-License-Identifier: Apache-2.0
"""The MutatingAdmissionPolicy of the chart: its expressions, evaluated by a library of CEL, change the
same pods in the same way as the webhook.

Plain CEL has no Object{}. So Object.spec.containers{name: x} becomes the map {'name': x} here, and this
file applies it as the API server does: lists of named things by their names."""
import copy
import re

import cel
import pytest
from conftest import POLICY_API, check, find, load, render
from pods import PODS

SETTINGS = [{}, {"tenant": "none"}, {"tenant": "ml-platform", "segmentsSize": "1Gi",
                                     "gpuResources": ["nvidia.com/gpu", "amd.com/*"]}]
KEYS = {"containers": "name", "initContainers": "name", "volumes": "name", "env": "name",
        "volumeMounts": "mountPath"}


def policy_of(settings):
    documents = render({"injection": {"mode": "policy", **settings}}, version="1.37")
    return find(documents, "MutatingAdmissionPolicy")["spec"]


def as_plain_cel(expression):
    """Object types as maps, whose keys are texts."""
    plain = re.sub(r"\bObject(\.\w+)*\s*\{", "{", expression)
    return re.sub(r"([{,]\s*)([a-zA-Z]\w*)(\s*):(?!:)", r"\1'\2'\3:", plain)


def evaluate(expression, pod, namespace, variables):
    context = cel.Context()
    context.add_variable("object", pod)
    context.add_variable("request", {"namespace": namespace})
    context.add_variable("variables", variables)
    context.add_function("join", lambda texts, by: by.join(texts))
    return cel.evaluate(as_plain_cel(expression), context)


def merge(live, applied, key=None):
    """What server-side apply makes of both."""
    if isinstance(live, dict) and isinstance(applied, dict):
        merged = dict(live)
        for name, value in applied.items():
            merged[name] = merge(live[name], value, KEYS.get(name)) if name in live else value
        return merged
    if key is not None:
        merged = list(live)
        for element in applied:
            same = [i for i, other in enumerate(merged) if other[key] == element[key]]
            if same:
                merged[same[0]] = merge(merged[same[0]], element)
            else:
                merged.append(element)
        return merged
    return applied


def apply_policy(policy, pod):
    namespace = pod["metadata"]["namespace"]
    variables = {}
    for variable in policy["variables"]:
        variables[variable["name"]] = evaluate(variable["expression"], pod, namespace, variables)
    mutation, = policy["mutations"]
    assert mutation["patchType"] == "ApplyConfiguration"
    applied = evaluate(mutation["applyConfiguration"]["expression"], pod, namespace, variables)
    return merge(copy.deepcopy(pod), applied)


def normalized(pod):
    """The policy puts its init container last, and both leave empty lists as they are."""
    pod = copy.deepcopy(pod)
    pod["spec"].get("initContainers", []).sort(key=lambda container: container["name"])
    return pod


@pytest.mark.parametrize("settings", SETTINGS, ids=["default", "no_tenants", "other_settings"])
def test_the_policy_makes_the_same_pods_as_the_webhook(start_webhook, settings):
    webhook = start_webhook({"injection": {"mode": "webhook", **settings}})
    policy = policy_of(settings)
    changed = 0
    for number, pod in enumerate(PODS):
        if pod["metadata"].get("labels", {}).get("rollcall/inject") == "false":
            continue  # the policy's objectSelector
        by_policy = apply_policy(policy, pod)
        assert normalized(by_policy) == normalized(webhook.mutate(pod)), f"pod {number}"
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


def test_clusters_with_the_policys_api_get_the_policy_and_older_ones_the_webhook():
    kinds = {d["kind"] for d in render(version="1.37", apis=[POLICY_API])}
    assert "MutatingAdmissionPolicy" in kinds and "MutatingWebhookConfiguration" not in kinds
    kinds = {d["kind"] for d in render(version="1.35")}
    assert "MutatingAdmissionPolicy" not in kinds and "MutatingWebhookConfiguration" in kinds
