"""The client of the how-to goes with the chart as it comes, and leases a desktop that is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deskhand.testing import xvfb
from tests.computerd.daemons import daemon
from tests.deploy.kubernetes import VERSIONS, Document, Helm, check, one, read

pytest.importorskip("fastapi")


def client() -> Document:
    job = one(read("client.yaml"), "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert isinstance(container, dict)
    return container


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_valid(version: str) -> None:
    check(one(read("client.yaml"), "Job"), version)


def test_it_goes_with_the_chart_as_it_comes(helm: Helm) -> None:
    documents = helm.render(release="desks")
    own, service = one(documents, "StatefulSet"), one(documents, "Service")["metadata"]["name"]
    container = client()
    urls, token = container["env"]
    numbers = range(own["spec"]["replicas"])
    assert urls["value"].split() == [f"http://{own['metadata']['name']}-{n}.{service}:8765" for n in numbers]
    secret = one(documents, "Secret")
    assert token["valueFrom"]["secretKeyRef"]["name"] == secret["metadata"]["name"]
    assert token["valueFrom"]["secretKeyRef"]["key"] in secret["data"]
    (rule,) = one(documents, "NetworkPolicy")["spec"]["ingress"]
    labels = one(read("client.yaml"), "Job")["spec"]["template"]["metadata"]["labels"]
    assert rule["from"][0]["podSelector"]["matchLabels"].items() <= labels.items()
    assert container["image"] == own["spec"]["template"]["spec"]["containers"][0]["image"]


def test_it_leases_a_desktop(tmp_path: Path) -> None:
    with xvfb() as server, daemon(server, tmp_path) as running:
        done = subprocess.run(
            [sys.executable, *client()["command"][1:], *client()["args"]],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
                # Nothing listens at the first: the other one is leased.
                "DESKHAND_URLS": f"http://127.0.0.1:1 {running.url}",
                "DESKHAND_TOKEN": running.token,
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (0, "")
    url, ok, size = done.stdout.split()
    assert (url, ok) == (running.url, "True")
    assert int(size) > 100
