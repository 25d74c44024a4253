"""The Helm chart, rendered by helm: valid for Kubernetes, and what it says is what the image needs."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from deskhand.computerd.auth import digest
from deskhand.computerd.secret import from_file
from tests.deploy.kubernetes import CHART, RIGHTS, VERSIONS, Document, Helm, check, one, read, strings

DIGEST = "sha256:" + "ab" * 32
EVERYTHING: Document = {
    "replicas": 12,
    "image": {"repository": "registry.example:5000/deskhand", "digest": DIGEST, "pullSecrets": ["registry"]},
    "session": "openbox",
    "size": "1920x1080",
    "hosts": ["desks.example.org"],
    "token": {"existingSecret": "mine", "key": "desk.token"},
    "userNamespace": True,
    "runtimeClassName": "gvisor",
    "podLabels": {"team": "evaluation"},
    "podAnnotations": {"example.org/why": "yes"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "desks", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "low",
    "updateStrategy": "OnDelete",
    "networkPolicy": {
        "dns": True,
        "egress": [{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [{"port": 443, "protocol": "TCP"}]}],
    },
    "podDisruptionBudget": {"maxUnavailable": "10%"},
    "serviceMonitor": {
        "enabled": True,
        "labels": {"release": "prometheus"},
        "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    },
}


def container(documents: list[Document]) -> Document:
    (found,) = one(documents, "StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def environment(documents: list[Document], number: int = 0) -> dict[str, str]:
    """As the kubelet makes it for the desktop of that number."""
    own = f"{one(documents, 'StatefulSet')['metadata']['name']}-{number}"
    found: dict[str, str] = {}
    for entry in container(documents)["env"]:
        value = own if "valueFrom" in entry else entry["value"]
        found[entry["name"]] = re.sub(r"\$\((\w+)\)", lambda match: found[match[1]], value)
    return found


def test_lint_has_nothing_to_say(helm: Helm) -> None:
    done = helm.run("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["as it comes", "with everything"])
def test_what_is_rendered_is_valid(helm: Helm, values: Document, version: str) -> None:
    documents = helm.render(values)
    kinds = sorted(document["kind"] for document in documents)
    expected = ["NetworkPolicy", "Pod", "PodDisruptionBudget", "Service", "StatefulSet"]
    assert kinds == sorted([*expected, "ServiceMonitor"] if values else [*expected, "Secret"])
    for document in documents:
        if document["kind"] != "ServiceMonitor":  # not Kubernetes' own
            check(document, version)


def test_what_is_not_valid_is_noticed(helm: Helm) -> None:
    document = one(helm.render(), "StatefulSet")
    document["spec"]["template"]["spec"]["containers"][0]["imagePullPolcy"] = "Always"
    with pytest.raises(Exception, match="imagePullPolcy"):
        check(document, VERSIONS[-1])


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["as it comes", "with everything"])
def test_the_same_rights_and_volumes_as_in_the_plain_manifest(helm: Helm, values: Document) -> None:
    here = one(helm.render(values), "StatefulSet")["spec"]["template"]["spec"]
    there = one(read("computer.yaml"), "Deployment")["spec"]["template"]["spec"]
    assert here["containers"][0]["securityContext"] == there["containers"][0]["securityContext"]
    assert here["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": RIGHTS}
    assert here["containers"][0]["volumeMounts"] == there["containers"][0]["volumeMounts"]
    assert [volume["name"] for volume in here["volumes"]] == [volume["name"] for volume in there["volumes"]]
    token = here["volumes"][-1]["secret"]
    assert token["defaultMode"] == 0o400
    for name in ("automountServiceAccountToken", "enableServiceLinks"):
        assert here[name] is there[name] is False


def test_every_probe_names_a_host_that_computerd_knows(helm: Helm) -> None:
    probed = container(helm.render({"startWithin": 300}))
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = probed[name]["httpGet"]
        assert (asked["path"], asked["port"]) == ("/health", "http")
        assert asked["httpHeaders"] == [{"name": "Host", "value": "localhost"}]
    # The entrypoint gives up first, and says why.
    assert probed["startupProbe"]["failureThreshold"] * probed["startupProbe"]["periodSeconds"] > 300


def test_a_desktop_is_known_by_every_name_that_a_client_may_call_it_by(helm: Helm) -> None:
    documents = helm.render(EVERYTHING, release="deskhand")
    asked = environment(documents, number=7)
    assert asked["DESKHAND_SESSION"] == "openbox"
    assert asked["DESKHAND_SIZE"] == "1920x1080"
    known = asked["DESKHAND_HOSTS"].split(",")
    own = "deskhand-7"
    assert known == [
        own,
        f"{own}.deskhand",
        f"{own}.deskhand.lab",
        f"{own}.deskhand.lab.svc",
        f"{own}.deskhand.lab.svc.cluster.local",
        "desks.example.org",
    ]
    service = one(documents, "Service")
    assert one(documents, "StatefulSet")["spec"]["serviceName"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"  # else the desktops have no names of their own
    (port,) = service["spec"]["ports"]
    assert {"name": port["targetPort"], "containerPort": port["port"]} in container(documents)["ports"]


def test_the_notes_name_addresses_that_are_known(helm: Helm) -> None:
    done = helm.run("install", "--dry-run=client", "desks", str(CHART), "--namespace", "lab", values={"replicas": 2})
    assert done.returncode == 0, done.stderr
    notes = done.stdout.partition("NOTES:")[2]
    addresses = re.findall(r"http://([^:/\s]+):8765", notes)
    assert len(addresses) == 2
    documents = helm.render({"replicas": 2})
    for number, address in enumerate(addresses):
        assert address in environment(documents, number)["DESKHAND_HOSTS"].split(",")


def test_a_token_is_made_that_computerd_takes(helm: Helm, tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        documents = helm.render()
        secret = one(documents, "Secret")
        made.append(base64.b64decode(secret["data"]["token"]))
        volume = one(documents, "StatefulSet")["spec"]["template"]["spec"]["volumes"][-1]
        assert volume["secret"]["secretName"] == secret["metadata"]["name"]
        assert volume["secret"]["items"] == [{"key": "token", "path": "token"}]
        assert environment(documents)["DESKHAND_TOKEN_FILE"] == "/etc/deskhand/token"
        # In no other place.
        others = [document for document in documents if document is not secret]
        assert not any(made[-1].decode() in text for text in strings(others))
    assert made[0] != made[1]
    assert len(base64.b64decode(made[0])) == 32
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_bytes(made[0])
    assert from_file(str(path)) == digest(made[0])


def test_a_token_that_is_there_is_used(helm: Helm) -> None:
    documents = helm.render(EVERYTHING)
    assert not [document for document in documents if document["kind"] == "Secret"]
    volume = one(documents, "StatefulSet")["spec"]["template"]["spec"]["volumes"][-1]["secret"]
    assert (volume["secretName"], volume["items"]) == ("mine", [{"key": "desk.token", "path": "token"}])
    (endpoint,) = one(documents, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "mine", "key": "desk.token"}


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["as it comes", "with everything"])
def test_all_select_the_desktops_and_not_the_test(helm: Helm, values: Document) -> None:
    documents = helm.render(values)
    own = one(documents, "StatefulSet")["spec"]
    selector = own["selector"]["matchLabels"]
    labels = own["template"]["metadata"]["labels"]
    assert selector.items() <= labels.items()
    # A new version of the chart alone is no other pod.
    assert not any("version" in name or "chart" in name for name in labels)
    assert one(documents, "Service")["spec"]["selector"] == selector
    assert one(documents, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == selector
    assert one(documents, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == selector
    assert not selector.items() <= one(documents, "Pod")["metadata"]["labels"].items()
    if values:
        assert one(documents, "ServiceMonitor")["spec"]["selector"]["matchLabels"] == selector
        assert selector.items() <= one(documents, "Service")["metadata"]["labels"].items()


def test_only_clients_come_in_and_nothing_goes_out(helm: Helm) -> None:
    documents = helm.render()
    policy = one(documents, "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (rule,) = policy["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"deskhand-client": "true"}}}]
    assert rule["ports"] == [{"port": "http"}]
    assert policy["egress"] == []
    assert one(documents, "Pod")["metadata"]["labels"]["deskhand-client"] == "true"


def test_what_is_let_out_is_what_was_said(helm: Helm) -> None:
    policy = one(helm.render({"networkPolicy": {"dns": True}}), "NetworkPolicy")["spec"]
    (dns,) = policy["egress"]
    assert [(port["port"], port["protocol"]) for port in dns["ports"]] == [(53, "UDP"), (53, "TCP")]
    assert dns["to"]
    policy = one(helm.render(EVERYTHING), "NetworkPolicy")["spec"]
    assert policy["egress"][1:] == EVERYTHING["networkPolicy"]["egress"]
    assert policy["ingress"][0]["from"][1:] == EVERYTHING["serviceMonitor"]["from"]


@pytest.mark.parametrize("clients", [[], None])
def test_no_clients_are_nobody_and_not_everybody(helm: Helm, clients: list[Any] | None) -> None:
    policy = one(helm.render({"networkPolicy": {"clients": clients}}), "NetworkPolicy")["spec"]
    assert policy["ingress"] == []


def test_what_is_turned_off_is_not_there(helm: Helm) -> None:
    documents = helm.render({"networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False}})
    assert sorted(document["kind"] for document in documents) == ["Pod", "Secret", "Service", "StatefulSet"]


def test_names_are_short_enough_for_what_is_made_of_them(helm: Helm) -> None:
    for release in ("a" * 53, "a" * 43 + "-deskhand", "deskhand"):
        names = {document["metadata"]["name"] for document in helm.render(release=release)}
        for name in names - {name for name in names if name.endswith("-health")}:
            assert len(f"{name}-0123456789") <= 63
            assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"replicas": -1}, "/replicas"),
        ({"size": "large"}, "/size"),
        ({"session": "kde"}, "/session"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"hosts": ["a,b"]}, "/hosts/0"),
        ({"hosts": ["http://a"]}, "/hosts/0"),
        ({"volumes": {"shm": "lots"}}, "/volumes/shm"),
        ({"networkPolicy": {"clients": [{}]}}, "/networkPolicy/clients/0"),
        ({"token": {"value": "a-secret-in-the-values"}}, "value"),
        ({"podDisruptionBudget": {"maxUnavailable": "half"}}, "/podDisruptionBudget/maxUnavailable"),
        ({"replica": 3}, "replica"),
    ],
)
def test_wrong_values_are_refused_by_name(helm: Helm, values: Document, said: str) -> None:
    done = helm.run("template", "desks", str(CHART), values=values)
    assert done.returncode != 0
    assert said in done.stderr


def test_every_value_has_a_default_a_schema_and_a_use() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    templates = "".join(path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file())
    assert set(values) == set(schema["properties"]) - {"global"}
    for name, value in values.items():
        inner = schema["properties"][name].get("properties")
        assert f".Values.{name}" in templates, name
        if inner is not None:
            assert set(value) == set(inner), name
            for key in value:
                assert re.search(rf"\.{key}\b", templates), (name, key)


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (CHART.parents[2] / "pyproject.toml").read_text()
    assert f'version = "{chart["appVersion"]}"' in project
    assert chart["kubeVersion"] == f">={VERSIONS[0]}.0-0"


def test_a_token_that_was_made_is_kept_over_an_upgrade(helm: Helm, tmp_path: Path) -> None:
    kept = base64.b64encode(b"the-token-of-the-first-installation").decode()
    with a_server_that_has({"desks-deskhand": {"token": kept}}) as address:
        config = tmp_path / "config"
        cluster = {"clusters": [{"name": "here", "cluster": {"server": address}}], "current-context": "here"}
        context = {"contexts": [{"name": "here", "context": {"cluster": "here", "user": ""}}]}
        config.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **cluster, **context}))
        arguments = ["--dry-run=server", "--disable-openapi-validation", "--kubeconfig", str(config)]
        values = {"networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False}}
        tokens = {}
        for release in ("desks", "others"):
            done = helm.run("template", release, str(CHART), "--namespace", "lab", *arguments, values=values)
            assert done.returncode == 0, done.stderr
            documents = [document for document in yaml.safe_load_all(done.stdout) if document]
            tokens[release] = one(documents, "Secret")["data"]["token"]
    assert tokens["desks"] == kept
    assert tokens["others"] != kept


@contextmanager
def a_server_that_has(secrets: dict[str, dict[str, str]]) -> Iterator[str]:
    """So much of a Kubernetes API server as a dry run asks for; gives its address."""

    def resources(group: str, *kinds: tuple[str, str]) -> Document:
        listed = [{"name": name, "kind": kind, "namespaced": True, "verbs": ["get"]} for name, kind in kinds]
        return {"kind": "APIResourceList", "groupVersion": group, "resources": listed}

    version = {"groupVersion": "apps/v1", "version": "v1"}
    answers: dict[str, Document] = {
        "/version": {"major": "1", "minor": "37", "gitVersion": "v1.37.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [version]}]},
        "/api/v1": resources("v1", ("secrets", "Secret"), ("services", "Service"), ("pods", "Pod")),
        "/apis/apps/v1": resources("apps/v1", ("statefulsets", "StatefulSet")),
    }
    for name, data in secrets.items():
        of = {"meta.helm.sh/release-name": "desks", "meta.helm.sh/release-namespace": "lab"}
        labels = {"app.kubernetes.io/managed-by": "Helm"}
        metadata = {"name": name, "namespace": "lab", "labels": labels, "annotations": of}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        answers[f"/api/v1/namespaces/lab/secrets/{name}"] = secret

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.partition("?")[0])
            body = json.dumps(found or {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            serving.join()
