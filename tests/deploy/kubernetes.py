"""What the tests of deploy/kubernetes share: helm, rendered documents, and Kubernetes' own schemas."""

from __future__ import annotations

import copy
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
CHART = KUBERNETES / "deskhand"
#: What the image's entrypoint needs, see docs/how-to/image.md.
RIGHTS = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SETPCAP", "SYS_CHROOT"]
#: Of Kubernetes: the oldest that the chart says it is for, and the newest that there are schemas of.
VERSIONS = ("1.27", "1.37")

Document = dict[str, Any]


@dataclass(frozen=True)
class Helm:
    """The program; nothing is asked of a cluster."""

    program: str

    def run(self, *arguments: str, values: Document | None = None) -> subprocess.CompletedProcess[str]:
        command = [self.program, *arguments]
        if values is not None:
            command += ["--values", "-"]
        return subprocess.run(
            command,
            input=yaml.safe_dump(values or {}),
            capture_output=True,
            text=True,
            timeout=60,
            # No cluster and no settings of whoever runs the tests.
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "KUBECONFIG": "/nonexistent"},
        )

    def render(self, values: Document | None = None, release: str = "desks", namespace: str = "lab") -> list[Document]:
        done = self.run("template", release, str(CHART), "--namespace", namespace, values=values)
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.safe_load_all(done.stdout) if document]


def find_helm() -> Helm:
    program = os.environ.get("HELM") or shutil.which("helm") or shutil.which(ROOT / ".setup/helm/helm")
    if program is None:
        if os.environ.get("CI") == "true" and platform.machine() == "x86_64":
            pytest.fail("helm is not there, and CI must not skip the chart's tests: tools/helm gets it")
        pytest.skip("helm is not there: tools/helm gets it")
    return Helm(program)


def read(path: str) -> list[Document]:
    """The documents of a file below deploy/kubernetes; each with anchors of its own."""
    return [copy.deepcopy(document) for document in yaml.safe_load_all((KUBERNETES / path).read_text())]


def one(documents: list[Document], kind: str, component: str | None = None) -> Document:
    found = [
        document
        for document in documents
        if document["kind"] == kind
        and component in (None, document["metadata"].get("labels", {}).get("app.kubernetes.io/component"))
    ]
    assert len(found) == 1, [document["kind"] for document in documents]
    return found[0]


def check(document: Document, version: str) -> None:
    """Against Kubernetes' schema of that version; an unknown field is an error.

    Raises:
        ValidationError: It is not as the schema says.
    """
    validate = pytest.importorskip("kubernetes_validate")
    validate.validate(document, version, strict=True)


def pod(specification: Document, labels: dict[str, str] | None = None) -> Document:
    """A pod as a template would make it, for its schema."""
    metadata = {"name": "of-the-template", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": specification}


def strings(value: Any) -> Iterator[str]:
    """Every string in a document, keys too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value
