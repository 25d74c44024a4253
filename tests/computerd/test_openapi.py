"""The OpenAPI document: committed, and true; schemathesis asks what it allows, and what it does not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from deskhand.testing import xvfb
from tests.computerd.daemons import RunningDaemon, daemon

schemathesis = pytest.importorskip("schemathesis")

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = json.loads((ROOT / "docs/reference/openapi.json").read_text("utf-8"))
SCHEMATHESIS: Any = schemathesis
SHORT = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(SHORT, max_examples=600)


def test_the_committed_document_is_the_routes() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools/openapi.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_served_document_is_the_committed_one(running: RunningDaemon) -> None:
    with running.client() as client:
        assert client.get("/openapi.json").json() == DOCUMENT


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon on a display where nothing runs that a random batch could break."""
    with xvfb() as server, daemon(server, tmp_path_factory.mktemp("daemon")) as running:
        yield running


def in_a_hurry(value: Any) -> Any:
    """What is asked for, with short waits."""
    if isinstance(value, dict):
        if value.get("action") in ("wait_window", "launch", "quit"):
            value = {"timeout": 0.1, **value}
        if isinstance(value.get("path"), list):
            value = {**value, "path": value["path"][:50]}
        for name in ("seconds", "timeout", "wait"):
            if isinstance(value.get(name), (int, float)) and value[name] > 0.1:
                value = {**value, name: 0.1}
        if isinstance(value.get("actions"), list):
            value = {**value, "actions": value["actions"][:8]}
        return {name: in_a_hurry(item) for name, item in value.items()}
    return [in_a_hurry(item) for item in value] if isinstance(value, list) else value


#: Without the token, which every request here has: what happens without one is test_access's.
OPEN = {**DOCUMENT, "security": [], "components": {**DOCUMENT["components"], "securitySchemes": {}}}
SCHEMA: Any = SCHEMATHESIS.openapi.from_dict(OPEN)


def ask(case: Any, running: RunningDaemon) -> None:
    if isinstance(case.body, (dict, list)):
        case.body = in_a_hurry(case.body)
    if case.path == "/lease":
        case.headers = {**(case.headers or {}), "Deskhand-Session": "random"}
    for name in case.headers or {}:
        if name.casefold() == "idempotency-key" and re.fullmatch("[!-~]{1,200}", str(case.headers[name])):
            case.headers[name] = uuid.uuid4().hex  # a key that was used before is refused, which no schema can tell
    headers = {"Authorization": f"Bearer {running.token}", "Accept": "application/json"}
    answer = case.call(base_url=running.url, headers=headers, timeout=60)
    excluded = []
    if answer.status_code == 501:  # there is no launcher, which is told as such
        assert answer.json()["kind"] == "unsupported"
        excluded.append(SCHEMATHESIS.checks.not_a_server_error)
    case.validate_response(answer, excluded_checks=excluded)


@SCHEMA.parametrize()  # type: ignore[untyped-decorator]
@SHORT
@pytest.mark.slow
def test_what_it_allows_and_does_not(case: Any, bare: RunningDaemon) -> None:
    ask(case, bare)


@SCHEMA.parametrize()  # type: ignore[untyped-decorator]
@LONG
@pytest.mark.long
def test_what_it_allows_and_does_not_at_length(case: Any, bare: RunningDaemon) -> None:
    ask(case, bare)
