"""Every example of ``docs/how-to/backends.md`` is run as it stands, on a real X server.

The container and E2B are stand-ins.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from deskhand.testing import XServer
from tests.commands import environment
from tests.standins import e2b

PAGE = Path(__file__).resolve().parent.parent / "docs" / "how-to" / "backends.md"
CODES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
#: What each example prints, as a pattern.
PRINTS = [
    r"True [1-9]\d+\n",
    r"True [1-9]\d+\n",
    r"\[1280, 800\]\n",
    r"True [1-9]\d+\n",
    r"hello Text Editor\n",
]


def test_every_example_is_run() -> None:
    assert len(CODES) == len(PRINTS) + 1


@pytest.mark.parametrize(
    ("code", "prints"), list(zip(CODES, PRINTS, strict=False)), ids=["own screen", "guest", "function", "e2b", "memory"]
)
def test_an_example(display: XServer, tmp_path: Path, code: str, prints: str) -> None:
    with e2b.serving(env={"DISPLAY": display.display}) as api:
        keys = {"E2B_API_KEY": e2b.KEY, "E2B_API_URL": api.url, "E2B_SANDBOX_URL": api.url}
        run_example(environment(display, **keys), tmp_path, code.replace(":71", display.display), prints)


def run_example(env: dict[str, str], tmp_path: Path, code: str, prints: str) -> None:
    code = code.replace('transports.docker("my-container")', "transports.subprocess()")
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
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
