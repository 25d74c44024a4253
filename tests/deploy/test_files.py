"""What is shipped to run the image with says the same everywhere, and what reads it can read it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

DEPLOY = Path(__file__).parents[2] / "deploy"
RIGHTS = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SETPCAP", "SYS_CHROOT"]


def compose() -> Any:
    return yaml.safe_load((DEPLOY / "computer/compose.yaml").read_text())["services"]["computer"]


def manifest(kind: str) -> Any:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes/computer.yaml").read_text())
    return next(document for document in documents if document["kind"] == kind)


def test_the_same_rights_in_compose_in_the_cluster_and_in_the_how_to() -> None:
    container = manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert compose()["cap_drop"] == container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    assert compose()["cap_add"] == container["securityContext"]["capabilities"]["add"] == RIGHTS
    how_to = (DEPLOY.parent / "docs/how-to/image.md").read_text()
    assert re.findall(r"--cap-add (\w+)", how_to) == RIGHTS
    assert compose()["read_only"] is container["securityContext"]["readOnlyRootFilesystem"] is True
    assert "no-new-privileges:true" in compose()["security_opt"]
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_every_probe_names_a_host_that_computerd_knows() -> None:
    container = manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container[name]["httpGet"]
        assert asked["path"] == "/health"
        assert {"name": "Host", "value": "localhost"} in asked["httpHeaders"]
    labels = manifest("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert manifest("Service")["spec"]["selector"] == labels
    assert manifest("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels


def test_the_port_is_published_on_loopback_alone() -> None:
    assert compose()["ports"] == ["127.0.0.1:8765:8765"]


def test_the_ignore_file_lets_through_what_is_copied_and_nothing_else() -> None:
    lines = (DEPLOY / "computer/Dockerfile.dockerignore").read_text().splitlines()
    let_through = {line[1:] for line in lines if line.startswith("!")}
    assert "*" in lines
    copied: set[str] = set()
    for line in (DEPLOY / "computer/Dockerfile").read_text().splitlines():
        words = line.split()
        if words[:1] == ["COPY"] and "--from=python" not in words:
            copied.update(word for word in words[1:-1] if not word.startswith("--"))
    assert let_through == copied
    for path in copied:
        assert (DEPLOY.parent / path).exists()


def test_no_address_of_an_index_and_no_secret_in_what_is_shipped() -> None:
    for path in (*DEPLOY.rglob("*"), *(DEPLOY.parent / "requirements").glob("*.txt")):
        if path.is_file() and path.name != "token":
            text = path.read_text()
            assert not re.search(r"index-url|find-links [^/]|file://|/simple", text), path


def test_firefox_has_policies_without_first_run_pages() -> None:
    policies = json.loads((DEPLOY / "computer/firefox-policies.json").read_text())["policies"]
    assert policies["OverrideFirstRunPage"] == ""
    assert policies["UserMessaging"]["SkipOnboarding"] is True


@pytest.mark.parametrize(
    "kind", ["deskhand-launcher@.service", "deskhand-computerd@.service", "deskhand-computerd@.socket"]
)
def test_units_are_read_by_systemd(kind: str, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    for path in (DEPLOY / "systemd").glob("deskhand-*@.*"):
        # What it starts is not installed here, and is not what is looked at.
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/deskhand/bin/deskhand", "/bin/true"))
    place = str(tmp_path / kind.replace("@", "@somebody"))
    done = subprocess.run([program, "verify", place], capture_output=True, text=True, timeout=60)
    about_ours = [line for line in done.stderr.splitlines() if "deskhand" in line]
    assert (done.returncode, about_ours) == (0, [])
    if kind == "deskhand-computerd@.service":
        done = subprocess.run(
            [program, "security", "--offline=true", "--threshold=12", place], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout[-300:]


def test_computerd_is_enabled_with_its_socket_and_serves_what_that_listens_at(tmp_path: Path) -> None:
    service = (DEPLOY / "systemd/deskhand-computerd@.service").read_text()
    assert "\nRequires=deskhand-computerd@%i.socket\n" in service
    assert " serve --listen systemd " in service
    program = shutil.which("systemctl")
    if program is None:
        pytest.skip("systemd is not installed")
    units = tmp_path / "etc/systemd/system"
    shutil.copytree(DEPLOY / "systemd", units)
    words = [program, f"--root={tmp_path}", "enable", "deskhand-computerd@somebody"]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    enabled = {str(path.relative_to(units)) for path in units.glob("*.wants/*")}
    wanted = {"graphical": "service", "sockets": "socket"}
    assert enabled == {f"{by}.target.wants/deskhand-computerd@somebody.{kind}" for by, kind in wanted.items()}


def test_every_example_task_starts_its_desktop_in_the_same_way() -> None:
    """A task of Harbor is built from its own folder alone, so that each has a copy."""
    copies = list((DEPLOY.parent / "examples/harbor/tasks").glob("*/environment/entrypoint.sh"))
    assert len(copies) == 10
    assert {path.parent.parent.name for path in copies if path.read_bytes() != copies[0].read_bytes()} == set()
