# SPDX-License-Identifier: Apache-2.0
"""The Helm chart: what it renders is valid for each version of Kubernetes, asks for no more rights than
it needs, and starts our programs with flags that they know."""
import copy
import json
import os
import re
import subprocess

import pytest
import yaml
from conftest import BUILD, CHART, IMAGE, POLICY_API, ROOT, check, find, helm, render, template, write_secret

VERSIONS = ["1.28", "1.32", "1.36", "1.37"]
DIGEST = "sha256:" + "0" * 64
VALUES = {
    "default": {},
    "webhook": {"injection": {"mode": "webhook"}},
    "no_injection": {"injection": {"mode": "none"}},
    "policy": {"injection": {"mode": "policy"}},
    "agents_only": {"daemon": {"enabled": False},
                    "agent": {"daemon": "rollcall.example:7655", "caSecret": "rollcall-ca"},
                    "injection": {"mode": "none"}},
    "daemon_only": {"agent": {"enabled": False}, "injection": {"mode": "none"},
                    "daemon": {"persistence": {"enabled": False}}},
    "cert_manager": {"tls": {"mode": "cert-manager",
                             "certManager": {"issuerRef": {"name": "ca", "kind": "ClusterIssuer"}}},
                     "injection": {"mode": "webhook"}},
    "existing_certificates": {"tls": {"mode": "existing", "existing": {
        "daemonSecret": "d", "webhookSecret": "w", "webhookCaBundle": "Q0E="}}},
    "events": {"daemon": {"events": True}},
    "nvsentinel": {"agent": {"nvsentinel": {"enabled": True, "mayRemediate": True, "folder": "/run/x"}}},
    "several": {"daemon": {"replicas": 3, "storeSecret": "rollcall-store"}},
    "several_with_cert_manager": {
        "daemon": {"replicas": 5, "storeSecret": "rollcall-store", "persistence": {"enabled": False},
                   "affinity": {"nodeAffinity": {}}},
        "tls": {"mode": "cert-manager", "certManager": {"issuerRef": {"name": "ca"}}}},
    "everything": {
        "image": {"repository": IMAGE, "digest": DIGEST, "pullSecrets": ["regcred"]},
        "daemon": {"hangAfter": "2m", "storeSecret": "rollcall-store",
                   "extraArgs": ["--alert=slack=@/alerts/url", "--max-jobs=50"],
                   "extraVolumes": [{"name": "alerts", "secret": {"secretName": "alerts"}}],
                   "extraVolumeMounts": [{"name": "alerts", "mountPath": "/alerts"}],
                   "persistence": {"storageClass": "fast", "size": "100Gi"},
                   "nodeSelector": {"pool": "cpu"}, "priorityClassName": "system-cluster-critical",
                   "tolerations": [{"operator": "Exists"}], "podAnnotations": {"a": "b"},
                   "affinity": {"nodeAffinity": {}}, "service": {"annotations": {"c": "d"}}},
        "access": {"viewers": ["system:serviceaccount:ci:default"],
                   "operators": ["system:serviceaccount:sre:oncall"], "tokenSecret": "rollcall-tokens"},
        "agent": {"stacks": False, "hostFacts": False, "listUnrecorded": False,
                  "extraArgs": ["--max-stacks-per-minute=10"],
                  "nodeSelector": {"gpu": "true"}, "appArmorProfile": {"type": "Unconfined"},
                  "priorityClassName": "system-node-critical", "podAnnotations": {"a": "b"},
                  "affinity": {"nodeAffinity": {}}},
        "injection": {"mode": "webhook", "webhook": {"replicas": 3, "nodeSelector": {"pool": "cpu"},
                                                     "priorityClassName": "system-cluster-critical",
                                                     "tolerations": [{"operator": "Exists"}]}},
        "networkPolicy": {"agents": [{"namespaceSelector": {"matchLabels": {"team": "ml"}}}],
                          "page": [{"namespaceSelector": {}}]},
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"},
                       "tokenSecret": {"name": "rollcall-metrics"}}},
}
# Kinds of other projects, which kubernetes-validate has no schemas for: their shape is checked below.
FOREIGN = {"PodMonitor", "Certificate"}


def documents_for(name, version):
    values = copy.deepcopy(VALUES[name])
    if version == "1.28" and name == "everything":
        values["agent"]["appArmorProfile"] = {}  # since 1.30
    if version in ("1.28", "1.32") and name == "policy":
        values["injection"]["mode"] = "webhook"  # since 1.36
    apis = [POLICY_API] if version in ("1.36", "1.37") else []
    return render(values, version=version, apis=apis)


@pytest.mark.parametrize("version", [*(pytest.param(version, marks=pytest.mark.long) for version in VERSIONS[:-1]),
                                     VERSIONS[-1]])
@pytest.mark.parametrize("name", VALUES)
def test_all_objects_are_valid(name, version):
    documents = documents_for(name, version)
    assert documents
    for document in documents:
        if document["kind"] not in FOREIGN:
            check(document, version)


@pytest.mark.parametrize("name", VALUES)
def test_helm_lint_finds_nothing(name, tmp_path):
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"image": {"repository": IMAGE}, **VALUES[name]}))
    done = helm("lint", "--strict", CHART, "--values", values)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_field_that_does_not_exist_fails_the_check():
    """The check itself can fail."""
    document = find(render(), "DaemonSet")
    document["spec"]["template"]["spec"]["hostPid"] = True
    with pytest.raises(Exception, match="hostPid"):
        check(document, "1.32")
    with pytest.raises(Exception):  # noqa: B017  (whatever the schemas' reader raises)
        check({"apiVersion": "example.org/v1", "kind": "Unknown"}, "1.32")


# --- The flags, with the programs.

def containers(documents):
    for document in documents:
        spec = document.get("spec", {}).get("template", {}).get("spec", {})
        for container in spec.get("containers", []):
            yield document, spec, container


def prepare_files(documents, folder):
    """What the pods mount, in a folder: (path in the pod, path here)."""
    secret = [d for d in documents if d["kind"] == "Secret" and "daemon" in d["metadata"]["name"]]
    if secret:
        write_secret(documents, secret[0]["metadata"]["name"], folder / "tls")
    else:
        made = render()
        write_secret(made, "rollcall-daemon-tls", folder / "tls")
    for name in ("token", "serviceaccount", "alerts", "tokens", "store"):
        (folder / name).mkdir()
    for path in ("token/token", "serviceaccount/token", "alerts/url"):
        (folder / path).write_text("https://hooks.example/x")
        (folder / path).chmod(0o600)
    (folder / "store" / "url").write_text("postgresql://rollcall:secret@db-1/rollcall\n")
    (folder / "store" / "url").chmod(0o600)
    (folder / "serviceaccount" / "ca.crt").write_bytes((folder / "tls" / "ca.crt").read_bytes())
    subprocess.run([BUILD / "bin" / "rollcall", "token", "new", f"--file={folder / 'tokens' / 'tokens'}",
                    "--name=a", "--role=viewer"], check=True, capture_output=True)
    return [("/var/run/secrets/kubernetes.io/serviceaccount", folder / "serviceaccount"),
            ("/tls/", f"{folder}/tls/"), ("/token/", f"{folder}/token/"),
            ("/tokens/", f"{folder}/tokens/"), ("/alerts/", f"{folder}/alerts/"),
            ("/store/", f"{folder}/store/"),
            ("/var/lib/rollcall", folder / "state")]


def with_files(argument, files):
    for inside, here in files:
        argument = argument.replace(f"={inside}", f"={here}").replace(f"@{inside}", f"@{here}")
    return argument.replace("$(NODE_NAME)", "node-7").replace("$(POD_NAME)", "rollcall-daemon-0")


@pytest.mark.parametrize("name", VALUES)
def test_the_programs_take_the_flags_of_their_containers(name, tmp_path):
    documents = documents_for(name, "1.32")
    files = prepare_files(documents, tmp_path)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ROLLCALL")}
    seen = set()
    for _, _, container in containers(documents):
        program = BUILD / "bin" / container["command"][0].removeprefix("/usr/bin/")
        seen.add(program.name)
        if program.name == "rollcall":
            continue  # test_webhook.py starts it with these flags
        arguments = [with_files(argument, files) for argument in container["args"]]
        done = subprocess.run([program, *arguments, "--check-config"], capture_output=True, text=True,
                              timeout=120, env=environment)
        assert done.returncode == 0, done.stderr
        wrong = subprocess.run([program, *arguments, "--no-such-flag", "--check-config"],
                               capture_output=True, text=True, timeout=120, env=environment)
        assert wrong.returncode != 0
    assert seen


def test_the_daemon_starts_with_the_flags_of_its_container(tmp_path):
    documents = render(VALUES["webhook"])
    files = prepare_files(documents, tmp_path)
    (tmp_path / "state").mkdir()
    container = find(documents, "Deployment", "rollcall-daemon")["spec"]["template"]["spec"]["containers"][0]
    arguments = [re.sub(r"=0\.0\.0\.0:\d+", "=127.0.0.1:0", with_files(argument, files))
                 for argument in container["args"]]
    daemon = subprocess.Popen([BUILD / "bin" / "rollcalld", *arguments], stderr=subprocess.STDOUT,
                              stdout=subprocess.PIPE, text=True)
    try:
        lines = []
        for line in daemon.stdout:
            lines.append(line)
            if "https://" in line:
                break
        else:
            raise AssertionError("".join(lines))
    finally:
        daemon.kill()
        daemon.wait(timeout=120)


# --- Rights.

def test_the_agent_has_two_capabilities_and_no_more():
    spec = find(render(), "DaemonSet")["spec"]["template"]["spec"]
    assert spec["hostPID"] is True
    assert not spec.get("hostNetwork") and not spec.get("hostIPC")
    assert spec["automountServiceAccountToken"] is False
    container, = spec["containers"]
    assert container["securityContext"] == {
        "runAsUser": 0, "runAsGroup": 0, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE", "DAC_READ_SEARCH"]},
        "seccompProfile": {"type": "RuntimeDefault"}}
    assert not any("hostPath" in volume for volume in spec["volumes"])


@pytest.mark.parametrize("name,is_on", [("everything", False), ("webhook", True)])
def test_what_the_agent_looks_at_can_be_switched_off(name, is_on):
    spec = find(render(VALUES[name]), "DaemonSet")["spec"]["template"]["spec"]
    flags = {f"--{flag}={'on' if is_on else 'off'}" for flag in ("stacks", "host-facts", "list-unrecorded")}
    assert flags <= {*spec["containers"][0]["args"]}


def test_nvsentinels_socket_is_the_only_thing_of_the_node_that_the_agent_gets():
    spec = find(render(VALUES["nvsentinel"]), "DaemonSet")["spec"]["template"]["spec"]
    assert [volume for volume in spec["volumes"] if "hostPath" in volume] == [
        {"name": "nvsentinel", "hostPath": {"path": "/run/x", "type": "DirectoryOrCreate"}}]
    assert {"name": "nvsentinel", "mountPath": "/nvsentinel", "readOnly": True} in spec["containers"][0]["volumeMounts"]
    flags = {"--nvsentinel=/nvsentinel/nvsentinel.sock", "--nvsentinel-may=remediate"}
    assert flags <= {*spec["containers"][0]["args"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_agent_gets_no_key_of_the_daemon(version):
    spec = find(documents_for("webhook", version), "DaemonSet")["spec"]["template"]["spec"]
    ca, = [volume["secret"] for volume in spec["volumes"] if "secret" in volume]
    assert ca["items"] == [{"key": "ca.crt", "path": "ca.crt"}]


def test_daemon_and_webhook_are_not_root_and_have_no_capability():
    documents = render(VALUES["webhook"])
    for part in ("rollcall-daemon", "rollcall-webhook"):
        spec = find(documents, "Deployment", part)["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsUser"] == 65532
        context = spec["containers"][0]["securityContext"]
        assert context["runAsNonRoot"] and context["readOnlyRootFilesystem"]
        assert context["capabilities"] == {"drop": ["ALL"]} and not context["allowPrivilegeEscalation"]


@pytest.mark.parametrize("name", [name for name in VALUES if name != "events"])
def test_the_chart_asks_for_no_role_in_the_cluster(name):
    kinds = {document["kind"] for document in documents_for(name, "1.37")}
    assert not kinds & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}


def test_the_webhook_never_stands_in_the_way():
    hook, = find(render(VALUES["webhook"]), "MutatingWebhookConfiguration")["webhooks"]
    assert hook["failurePolicy"] == "Ignore" and hook["sideEffects"] == "None"
    assert hook["timeoutSeconds"] <= 5
    assert hook["namespaceSelector"] == {"matchLabels": {"rollcall/inject": "true"}}
    assert hook["rules"] == [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                              "resources": ["pods"], "scope": "Namespaced"}]


@pytest.mark.parametrize("name", ["everything", "several"])
def test_every_selector_finds_the_pods_of_its_part_only(name):
    documents = render(VALUES[name])
    pods = {d["metadata"]["name"]: d["spec"]["template"]["metadata"]["labels"]
            for d in documents if d["kind"] in ("Deployment", "DaemonSet", "StatefulSet")}
    for document in documents:
        selector = document.get("spec", {}).get("selector") or document.get("spec", {}).get("podSelector")
        if not selector:
            continue
        wanted = selector.get("matchLabels", selector).items()
        found = [name for name, labels in pods.items() if wanted <= labels.items()]
        # The Service rollcall-daemons is that of the pods of rollcall-daemon.
        assert found == [document["metadata"]["name"].replace("-daemons", "-daemon")], document["kind"]


@pytest.mark.parametrize("name", ["everything", "several"])
def test_every_secret_volume_and_account_exists_or_is_the_users(name):
    documents = render(VALUES[name])
    secrets = {d["metadata"]["name"] for d in documents if d["kind"] == "Secret"}
    accounts = {d["metadata"]["name"] for d in documents if d["kind"] == "ServiceAccount"}
    for document, spec, container in containers(documents):
        assert spec["serviceAccountName"] in accounts
        named = {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
        assert named <= secrets | {"rollcall-tokens", "alerts", "rollcall-store"}
        mounts = {mount["name"] for mount in container["volumeMounts"]}
        templates = document["spec"].get("volumeClaimTemplates", [])
        assert mounts == {volume["name"] for volume in spec["volumes"]} | {
            template["metadata"]["name"] for template in templates}


def test_grants_name_the_accounts_of_the_chart():
    documents = render(VALUES["everything"], version="1.37", name="prod", namespace="watch")
    args = find(documents, "Deployment", "prod-rollcall-daemon")["spec"]["template"]["spec"]["containers"][0]["args"]
    grants = [argument for argument in args if argument.startswith("--grant=")]
    assert grants == [
        "--grant=agent=sub:system:serviceaccount:watch:prod-rollcall-agent,tenant=*",
        "--grant=viewer=sub:system:serviceaccount:watch:prod-rollcall-viewer,tenant=*",
        "--grant=operator=sub:system:serviceaccount:watch:prod-rollcall-operator,tenant=*",
        "--grant=viewer=sub:system:serviceaccount:ci:default,tenant=*",
        "--grant=operator=sub:system:serviceaccount:sre:oncall,tenant=*"]
    accounts = {d["metadata"]["name"] for d in documents if d["kind"] == "ServiceAccount"}
    assert {"prod-rollcall-agent", "prod-rollcall-viewer", "prod-rollcall-operator"} <= accounts


def test_tokens_of_old_clusters_name_no_node_and_the_notes_say_so():
    for version, is_old in (("1.28", True), ("1.32", False)):
        documents = render(version=version)
        args = find(documents, "Deployment", "rollcall-daemon")["spec"]["template"]["spec"]["containers"][0]["args"]
        assert any(argument.endswith(",host=*") for argument in args) == is_old


# --- Errors are reported.

@pytest.mark.parametrize("values, why", [
    ({"image": {"repository": ""}}, "image.repository is missing: deploy/package.sh image makes the image"),
    ({"daemon": {"enabled": False}}, "the agents need the daemon's address"),
    ({"tls": {"mode": "cert-manager"}}, "tls.certManager.issuerRef is missing"),
    ({"tls": {"mode": "existing"}, "injection": {"mode": "none"}},
     "tls.existing.daemonSecret is missing"),
    ({"podMonitor": {"enabled": True}, "networkPolicy": {"enabled": False}},
     "podMonitor.tokenSecret.name is missing"),
    ({"podMonitor": {"enabled": True, "tokenSecret": {"name": "m"}}},
     "set where Prometheus runs:  --set 'networkPolicy.page[0]"),
    ({"daemon": {"enabled": False}, "agent": {"daemon": "a:7655"}},
     "make a secret with its ca.crt in this namespace and name it:  --set agent.caSecret=NAME"),
    ({"agent": {"daemon": "::1:7655"}}, "agent/daemon"),
    ({"daemon": {"events": True}, "injection": {"tenant": "ml"}},
     "daemon.events needs injection.tenant=namespace"),
    ({"nameOverride": "a.b"}, "nameOverride"),
    ({"injection": {"installer": {"cpu": "a lot"}}}, "installer/cpu"),
    ({"daemon": {"hangafter": "60s"}}, "hangafter"),
    ({"injection": {"mode": "always"}}, "injection/mode"),
    ({"access": {"viewers": ["ci"]}}, "access/viewers/0"),
    ({"daemon": {"extraArgs": ["hang-after=3s"]}}, "extraArgs/0"),
    ({"daemon": {"replicas": 3}},
     "name it:  --set daemon.storeSecret=rollcall-store"),
    ({"daemon": {"replicas": 2, "storeSecret": "s", "persistence": {"existingClaim": "c"}}},
     "leave it out, and say of which class the volumes are:  --set daemon.persistence.existingClaim= "),
    ({"daemon": {"replicas": 0}}, "daemon/replicas"),
    ({"agent": {"daemon": "a:7655,b"}}, "agent/daemon"),
])
def test_wrong_values_are_refused_with_the_reason(values, why):
    done = template(values)
    assert done.returncode != 0
    assert why in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["prod.eu", "1prod", "2.rollcall"])
def test_release_names_that_no_service_can_have_are_refused_with_the_way_out(name):
    done = template(name=name)
    assert done.returncode != 0
    assert "cannot begin the names of services" in done.stderr and "nameOverride=rollcall" in done.stderr
    assert render({"nameOverride": "rollcall"}, name=name)


@pytest.mark.parametrize("name", ["a" * 53, "a" * 30 + "-" * 20 + "b", "r-" * 26 + "r"])
def test_no_name_of_a_service_is_too_long(name):
    for values in ({}, {"nameOverride": "n" * 40}):
        for document in render(values, name=name):
            if document["kind"] == "Service":
                assert re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", document["metadata"]["name"])


def test_agents_of_a_daemon_elsewhere_know_its_authority():
    for daemon in ("rollcall.example:7655", "[::1]:7655", "10.0.0.1:7655", "a.example:7655,[::1]:7655"):
        documents = render({"daemon": {"enabled": False}, "injection": {"mode": "none"},
                            "agent": {"daemon": daemon, "caSecret": "rollcall-ca"}})
        spec = find(documents, "DaemonSet")["spec"]["template"]["spec"]
        assert f"--daemon={daemon}" in spec["containers"][0]["args"]
        assert [v["secret"]["secretName"] for v in spec["volumes"] if "secret" in v] == ["rollcall-ca"]


def texts_of(tree):
    if isinstance(tree, dict):
        return [text for value in tree.values() for text in texts_of(value)]
    return [text for value in tree for text in texts_of(value)] if isinstance(tree, list) else [tree]


def test_names_that_look_like_numbers_stay_texts():
    digits = "12345"
    documents = render({
        "nameOverride": "rollcall", "image": {"repository": IMAGE, "pullSecrets": [digits]},
        "daemon": {"priorityClassName": digits, "persistence": {"storageClass": digits, "size": digits}},
        "agent": {"priorityClassName": digits, "caSecret": digits},
        "access": {"tokenSecret": digits},
        "injection": {"webhook": {"priorityClassName": digits}},
        "networkPolicy": {"page": [{"podSelector": {}}]},
        "podMonitor": {"enabled": True, "tokenSecret": {"name": digits, "key": digits}},
    }, name=digits, namespace=digits)
    for document in documents:
        if document["kind"] not in FOREIGN:
            check(document, "1.32")
        assert int(digits) not in texts_of(document), document["kind"]


@pytest.mark.parametrize("given, rendered", [("", None), ("-", ""), ("fast", "fast")])
def test_the_storage_class_may_be_the_clusters_default_or_none(given, rendered):
    documents = render({"daemon": {"persistence": {"storageClass": given}}})
    assert find(documents, "PersistentVolumeClaim")["spec"].get("storageClassName") == rendered


def test_the_schema_of_the_values_knows_every_value_of_the_defaults():
    schema = json.loads((CHART / "values.schema.json").read_text())

    def compare(properties, tree, path):
        for key, value in tree.items():
            assert key in properties, f"{path}/{key}"
            below = properties[key].get("properties")
            if below is not None:
                compare(below, value, f"{path}/{key}")
    compare(schema["properties"], yaml.safe_load((CHART / "values.yaml").read_text()), "")


def test_the_chart_has_the_version_of_the_project():
    version = re.search(r"project\(rollcall VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)


# --- Several daemons.

def test_one_replica_is_the_daemon_as_without_the_value():
    for daemon in ({}, {"storeSecret": "s"}):
        values = {"tls": VALUES["existing_certificates"]["tls"]}  # the chart's own differ in each rendering
        assert (template({**values, "daemon": {**daemon, "replicas": 1}}).stdout
                == template({**values, "daemon": daemon}).stdout != "")


def test_several_daemons_have_names_that_last_and_find_each_other():
    documents = render(VALUES["several"], name="prod", namespace="watch")
    daemons = find(documents, "StatefulSet", "prod-rollcall-daemon")["spec"]
    assert daemons["replicas"] == 3 and daemons["serviceName"] == "prod-rollcall-daemons"
    container, = daemons["template"]["spec"]["containers"]
    assert {"--daemon-name=watch/$(POD_NAME)", "--store=@/store/url", "--tls-client-ca=/tls/ca.crt",
            "--advertise=$(POD_NAME).prod-rollcall-daemons.watch.svc:7655"} <= set(container["args"])
    assert container["env"] == [
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    names = find(documents, "Service", "prod-rollcall-daemons")["spec"]
    assert names["clusterIP"] == "None" and names["publishNotReadyAddresses"] is True
    agent, = find(documents, "DaemonSet")["spec"]["template"]["spec"]["containers"]
    assert "--daemon=prod-rollcall-daemons.watch.svc:7655" in agent["args"]
    ingress = find(documents, "NetworkPolicy", "prod-rollcall-daemon")["spec"]["ingress"][0]
    assert [peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in ingress["from"]] == [
        "agent", "daemon"]


def test_several_daemons_go_one_at_a_time_and_each_keeps_what_the_database_has_not():
    documents = render(VALUES["several"])
    daemons = find(documents, "StatefulSet")["spec"]
    assert daemons["updateStrategy"] == {"type": "RollingUpdate"} and daemons["minReadySeconds"] > 0
    claim, = daemons["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "state"
    assert find(documents, "PodDisruptionBudget", "rollcall-daemon")["spec"]["maxUnavailable"] == 1
    assert not any(d["kind"] == "PersistentVolumeClaim" for d in documents)
    term, = daemons["template"]["spec"]["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"]["matchLabels"] == daemons["selector"]["matchLabels"]
    theirs = find(render(VALUES["several_with_cert_manager"]), "StatefulSet")["spec"]
    assert theirs["template"]["spec"]["affinity"] == {"nodeAffinity": {}}, "the user's counts"
    assert "volumeClaimTemplates" not in theirs
    assert {"name": "state", "emptyDir": {}} in theirs["template"]["spec"]["volumes"]


def test_the_certificate_of_several_daemons_holds_the_name_of_each(tmp_path):
    # Another secret than that of one daemon, which an upgrade would keep, without these names.
    folder = write_secret(render(VALUES["several"]), "rollcall-daemons-tls", tmp_path)
    for host in ("rollcall-daemon-2.rollcall-daemons.rollcall.svc", "rollcall-daemons.rollcall.svc",
                 "rollcall-daemon.rollcall.svc", "localhost"):
        done = subprocess.run(["openssl", "verify", "-CAfile", folder / "ca.crt", "-purpose", "sslserver",
                               "-verify_hostname", host, folder / "tls.crt"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    names = find(render(VALUES["several_with_cert_manager"]), "Certificate", "rollcall-daemon")["spec"]
    assert names["secretName"] == "rollcall-daemons-tls"
    assert "*.rollcall-daemons.rollcall.svc" in names["dnsNames"]


# --- Kinds of other projects.

def test_cert_manager_makes_the_certificates_that_the_pods_mount():
    documents = render(VALUES["cert_manager"])
    certificates = {d["metadata"]["name"]: d["spec"] for d in documents if d["kind"] == "Certificate"}
    assert set(certificates) == {"rollcall-daemon", "rollcall-webhook"}
    assert certificates["rollcall-webhook"]["secretName"] == "rollcall-webhook-tls"
    assert "rollcall-webhook.rollcall.svc" in certificates["rollcall-webhook"]["dnsNames"]
    hook = find(documents, "MutatingWebhookConfiguration")
    assert hook["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "rollcall/rollcall-webhook"}
    assert "caBundle" not in hook["webhooks"][0]["clientConfig"]
    assert not any(d["kind"] == "Secret" for d in documents)


def test_prometheus_knows_the_daemon_and_shows_a_token():
    endpoint, = find(render(VALUES["everything"]), "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert endpoint["scheme"] == "https" and endpoint["port"] == "page"
    assert endpoint["tlsConfig"]["serverName"] == "rollcall-daemon.rollcall.svc"
    assert endpoint["authorization"] == {"credentials": {"name": "rollcall-metrics", "key": "token"}}


# --- Certificates of the chart's own.

def test_the_charts_certificates_are_of_one_authority_and_for_the_names_of_the_services(tmp_path):
    documents = render(VALUES["webhook"])
    for part in ("daemon", "webhook"):
        folder = write_secret(documents, f"rollcall-{part}-tls", tmp_path / part)
        done = subprocess.run(["openssl", "verify", "-CAfile", folder / "ca.crt", "-purpose", "sslserver",
                               "-verify_hostname", f"rollcall-{part}.rollcall.svc", folder / "tls.crt"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        text = subprocess.run(["openssl", "x509", "-in", folder / "tls.crt", "-noout", "-text"],
                              capture_output=True, text=True, check=True).stdout
        assert "prime256v1" in text
    hook, = find(documents, "MutatingWebhookConfiguration")["webhooks"]
    assert hook["clientConfig"]["caBundle"] == find(documents, "Secret", "rollcall-webhook-tls")["data"]["ca.crt"]
