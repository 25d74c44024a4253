"""The examples of ``docs/how-to/fleet-page.md`` and ``gymnasium.md`` are run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.commands import deskhand, environment

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"


def codes(page: str, language: str) -> list[str]:
    text = (HOW_TO / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def python(code: str, directory: Path) -> str:
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=environment(None), cwd=directory, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_lines_of_the_page(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    (lines,) = codes("fleet-page.md", "sh")
    lines = lines.replace("nightly", "docs-page").replace("127.0.0.1:8770", "127.0.0.1:0")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    try:
        done = subprocess.run(
            ["sh", "-ec", lines], env=environment(None, PATH=path), cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        (address,) = re.findall(r"^page: (\S+)", done.stdout, flags=re.MULTILINE)
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert b"Opening the fleet" in answer.read()
    finally:
        deskhand(None, "fleet", "down", "--name", "docs-page")


@pytest.mark.slow
def test_the_page_of_a_pool(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    (code,) = codes("fleet-page.md", "python")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/fleet\?ticket=\S+\n", python(code, tmp_path))


@pytest.mark.slow
def test_the_lines_of_gymnasium(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    first, task = codes("gymnasium.md", "python")
    assert re.fullmatch(r"\(800, 1280, 3\) True \w+\n", python(first, tmp_path))
    tried = (
        "\nwith env:\n    _, info = env.reset(seed=2)\n    x, y = info['place']\n"
        "    print(env.step({'action': 'click', 'x': x, 'y': y})[1:4])\n"
    )
    assert python(first.partition("\n\n")[0] + "\n" + task + tried, tmp_path) == "(1.0, True, False)\n"


def test_every_metric_that_is_told_is_named() -> None:
    from deskhand.fleet import metrics

    hosts = [{"name": "h"}]
    told = metrics.text({"ok": True, "waiting": 0, "hosts": hosts, "manager": {}}, 0.0)
    names = re.findall(r"^# TYPE (deskhand_fleet_\w+)", told, flags=re.MULTILINE)
    assert len(names) > 10
    named = {
        name if name.startswith("deskhand_fleet") else f"deskhand_fleet{name}"
        for name in re.findall(r"`((?:deskhand_fleet)?_\w+)", (HOW_TO / "fleet-page.md").read_text("utf-8"))
    }
    assert set(names) == named
