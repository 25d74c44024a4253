"""The examples for KubeRay and agent-sandbox: their pods are valid, and run the image as it wants to be run.

With ``DESKHAND_CRDS``, a directory with the custom resource definitions of KubeRay 1.7 (there in
``helm-chart/kuberay-operator/crds``) and of agent-sandbox 0.5 (``k8s/crds``), the examples are held against those too.
"""

from __future__ import annotations

import copy
import functools
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.deploy.kubernetes import KUBERNETES, RIGHTS, ROOT, VERSIONS, Document, check, one, pod, read

FILES = ("kuberay/raycluster.yaml", "agent-sandbox/desktops.yaml", "agent-sandbox/claim.yaml")


def ray_groups() -> list[Document]:
    cluster = one(read("kuberay/raycluster.yaml"), "RayCluster")["spec"]
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


@pytest.mark.parametrize("version", VERSIONS)
def test_pods_and_policies_are_valid(version: str) -> None:
    template = one(read("agent-sandbox/desktops.yaml"), "SandboxTemplate")["spec"]
    check(pod(template["podTemplate"]["spec"], template["podTemplate"]["metadata"]["labels"]), version)
    for group in ray_groups():
        check(pod(group["template"]["spec"]), version)
    check(one(read("kuberay/raycluster.yaml"), "NetworkPolicy"), version)
    selector = {"podSelector": {"matchLabels": {"app": "any"}}, "policyTypes": ["Ingress", "Egress"]}
    policy = {"metadata": {"name": "of-the-template"}, "spec": {**selector, **template["networkPolicy"]}}
    check({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", **policy}, version)


def test_a_warm_desktop_is_the_pod_of_the_plain_manifest() -> None:
    warm = one(read("agent-sandbox/desktops.yaml"), "SandboxTemplate")["spec"]["podTemplate"]["spec"]
    plain = one(read("computer.yaml"), "Deployment")["spec"]["template"]["spec"]
    here, there = warm["containers"][0], plain["containers"][0]
    for name in ("image", "ports", "securityContext", "resources", "volumeMounts", "readinessProbe", "livenessProbe"):
        assert here[name] == there[name], name
    assert here["securityContext"]["capabilities"]["add"] == RIGHTS
    assert warm["volumes"][-1]["secret"]["secretName"] == plain["volumes"][-1]["secret"]["secretName"]
    assert warm["automountServiceAccountToken"] is False


def test_pool_and_claim_go_with_the_template() -> None:
    documents = read("agent-sandbox/desktops.yaml")
    template, pool = one(documents, "SandboxTemplate"), one(documents, "SandboxWarmPool")
    claim = one(read("agent-sandbox/claim.yaml"), "SandboxClaim")
    assert {document["apiVersion"] for document in (template, pool, claim)} == {"extensions.agents.x-k8s.io/v1beta1"}
    assert pool["spec"]["sandboxTemplateRef"]["name"] == template["metadata"]["name"]
    assert claim["spec"]["warmPoolRef"]["name"] == pool["metadata"]["name"]
    # A claim with variables of its own would get no warm desktop.
    assert "env" not in claim["spec"]
    (rule,) = template["spec"]["networkPolicy"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"deskhand-client": "true"}}}]
    assert template["spec"]["networkPolicy"]["egress"] == []


def test_the_head_has_no_desktops_and_the_workers_offer_them() -> None:
    head, *workers = ray_groups()
    assert head["resources"] == {"CPU": "0"}
    assert [float(group["resources"].get("desktops", 0)) for group in workers] == [1.0]
    for group in (head, *workers):
        # KubeRay refuses what stands in both.
        assert not {"num-cpus", "num-gpus", "memory", "resources"} & set(group["rayStartParams"])
    (worker,) = workers[0]["template"]["spec"]["containers"]
    assert worker["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": RIGHTS}
    (first,) = head["template"]["spec"]["containers"]
    assert "add" not in first["securityContext"]["capabilities"]


def test_what_kuberay_would_start_is_started(tmp_path: Path) -> None:
    """Its command has words in quotes, which a plain $KUBERAY_GEN_RAY_START_CMD would take for part of the words."""
    ray = tmp_path / "ray"
    ray.write_text('#!/bin/sh\nprintf \'%s\\n\' "$@" "$(ulimit -n)"\n')
    ray.chmod(0o755)
    generated = "ray start  --block  --num-cpus=4  --resources='{\"desktops\":1}' "
    for group in ray_groups():
        (container,) = group["template"]["spec"]["containers"]
        assert container["command"] == ["/usr/bin/tini", "--", "/bin/bash", "-c", "--"]
        (script,) = container["args"]
        asked = script.replace("65536", "256")  # what any machine allows
        done = subprocess.run(
            ["/bin/bash", "-c", "--", asked],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "KUBERAY_GEN_RAY_START_CMD": generated},
            capture_output=True,
            text=True,
            timeout=20,
        )
        assert done.stdout.splitlines() == ["start", "--block", "--num-cpus=4", '--resources={"desktops":1}', "256"]


def test_the_version_of_ray_is_the_one_that_is_installed() -> None:
    cluster = one(read("kuberay/raycluster.yaml"), "RayCluster")["spec"]
    pinned = re.search(r"^ray==(\S+)", (ROOT / "requirements/ray.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert cluster["rayVersion"] == pinned[1]


def test_the_ignore_file_of_the_image_with_ray_lets_through_what_is_copied() -> None:
    lines = (KUBERNETES / "kuberay/Dockerfile.dockerignore").read_text().splitlines()
    copied = [
        line.split()[1]
        for line in (KUBERNETES / "kuberay/Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
    ]
    assert lines == ["*", *(f"!{path}" for path in copied)]
    assert all((ROOT / path).exists() for path in copied)


@pytest.mark.parametrize("file", FILES)
def test_custom_resources_are_as_their_definitions_say(file: str) -> None:
    definitions = custom_resource_definitions()
    own = [document for document in read(file) if document["kind"] != "NetworkPolicy"]
    for document in own:
        assert errors_of(definitions, document) == []
        spoilt = copy.deepcopy(document)
        spoilt["spec"]["unheardOf"] = 1
        assert errors_of(definitions, spoilt) != []


@functools.cache
def custom_resource_definitions() -> dict[tuple[str, str], Document]:
    """Group and version, and kind, to the schema, which takes no unknown field here."""
    place = os.environ.get("DESKHAND_CRDS")
    if not place:
        pytest.skip("DESKHAND_CRDS names no directory with the definitions of KubeRay and agent-sandbox")
    found = {}
    for path in Path(place).rglob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document.get("kind") == "CustomResourceDefinition":
                for version in document["spec"]["versions"]:
                    group = f"{document['spec']['group']}/{version['name']}"
                    schema = version["schema"]["openAPIV3Schema"]
                    schema["properties"]["metadata"] = {}
                    found[group, document["spec"]["names"]["kind"]] = closed(schema)
    return found


def closed(schema: Any) -> Any:
    """As the server takes it with strict field validation (Kubernetes, Field validation)."""
    if isinstance(schema, dict):
        if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
        if schema.get("x-kubernetes-int-or-string"):
            schema["type"] = ["integer", "string"]
        for name, inner in schema.items():
            if name != "additionalProperties" or isinstance(inner, dict):
                closed(inner)
    elif isinstance(schema, list):
        for inner in schema:
            closed(inner)
    return schema


def errors_of(definitions: dict[tuple[str, str], Document], document: Document) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema")
    schema = definitions[document["apiVersion"], document["kind"]]
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]
