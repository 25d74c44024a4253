"""``--own-screen``: the person is asked, and what the agent does gives way to what they do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deskhand.testing import XServer
from tests.commands import deskhand

pytestmark = pytest.mark.slow

CLICK: dict[str, Any] = {"actions": [{"action": "click", "x": 5, "y": 5}]}


def run(display: XServer, tmp_path: Path, line: dict[str, Any], *options: str) -> Any:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"goal": "the goal"}) + "\n" + json.dumps(line) + "\n")
    model = f"scripted:{script}"
    return deskhand(display, "run", "--own-screen", "--model", model, *options, cwd=tmp_path, verbose=True)


def test_allowed(display: XServer, tmp_path: Path) -> None:
    answer = run(display, tmp_path, CLICK, "--approve")
    assert answer.status == 0
    assert "done" in answer.text


def test_nobody_to_ask(display: XServer, tmp_path: Path) -> None:
    answer = run(display, tmp_path, CLICK)
    assert answer.status == 3
    assert "did not grant permission" in answer.text


def test_nothing_is_launched(display: XServer, tmp_path: Path) -> None:
    answer = run(display, tmp_path, {"actions": [{"action": "launch", "app": "Mousepad"}]}, "--approve")
    assert answer.status != 0
    assert "own launcher" in answer.text + answer.error


def test_no_display(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"goal": "the goal"}) + "\n" + json.dumps(CLICK) + "\n")
    answer = deskhand(None, "run", "--own-screen", "--model", f"scripted:{script}", cwd=tmp_path)
    assert answer.status == 5
    assert "no display is named" in answer.error
