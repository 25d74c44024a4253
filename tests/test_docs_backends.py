"""Every example of ``docs/backends.md`` is run as it stands, on a real X server, with a stand-in for the container."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from deskhand.testing import XServer
from tests.commands import environment

PAGE = Path(__file__).resolve().parent.parent / "docs" / "backends.md"
CODES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
#: What each example prints, as a pattern.
PRINTS = [r"True [1-9]\d+\n", r"\[1280, 800\]\n", r"hello Text Editor\n"]


def test_every_example_is_run() -> None:
    assert len(CODES) == len(PRINTS) + 1


@pytest.mark.parametrize(
    ("code", "prints"), list(zip(CODES, PRINTS, strict=False)), ids=["guest", "function", "memory"]
)
def test_an_example(display: XServer, tmp_path: Path, code: str, prints: str) -> None:
    code = code.replace('transports.docker("my-container")', "transports.subprocess()").replace(":71", display.display)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(display), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(prints, done.stdout)


def test_a_backend_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(CODES[-1])
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "0_0 or info or shape",
        "test_mine.py",
    ]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
