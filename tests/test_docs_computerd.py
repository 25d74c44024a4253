"""Every example of ``docs/how-to/computerd.md`` is run as it stands, against a daemon on a real X server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deskhand.testing import xvfb
from tests.commands import PROGRAM, environment
from tests.computerd.daemons import RunningDaemon, daemon

pytest.importorskip("fastapi")

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "how-to" / "computerd.md").read_text("utf-8")
SHELL = re.findall(r"^```bash\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
PYTHON = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningDaemon, Path]]:
    """A daemon, and a directory where its token is ``token``, made as the page says."""
    directory = tmp_path_factory.mktemp("docs")
    make, serve = SHELL[0].splitlines()
    subprocess.run(["bash", "-c", make], cwd=directory, check=True)
    assert serve == "deskhand serve --display :71 --token-file token"
    assert shutil.which("curl"), "curl is not installed"
    with xvfb() as server, daemon(server, directory, token_file=directory / "token") as running:
        yield running, directory


def _here(text: str, running: RunningDaemon) -> str:
    return text.replace("http://127.0.0.1:8765", running.url)


def test_every_example_is_run() -> None:
    assert (len(SHELL), len(PYTHON)) == (4, 1)


def test_python(place: tuple[RunningDaemon, Path]) -> None:
    running, directory = place
    words = [sys.executable, "-c", _here(PYTHON[0], running)]
    done = subprocess.run(words, cwd=directory, env=environment(None), capture_output=True, text=True, timeout=60)
    assert re.fullmatch(r"True [1-9]\d+\n", done.stdout), done.stderr


@pytest.mark.parametrize("number", [1, 2, 3])
def test_curl(place: tuple[RunningDaemon, Path], number: int) -> None:
    running, directory = place
    words = ["bash", "-c", _here(SHELL[number], running)]
    done = subprocess.run(words, cwd=directory, env=environment(None), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    if number == 1:
        assert json.loads(done.stdout)["size"] == [1280, 800]
    elif number == 2:
        assert json.loads(done.stdout)["picture"]["width"] == 400
    else:
        assert (directory / "screen.png").read_bytes().startswith(b"\x89PNG")


def test_the_defaults_that_the_page_names() -> None:
    done = subprocess.run([PROGRAM, "serve", "--help"], capture_output=True, text=True, env=environment(None))
    assert "127.0.0.1:8765" in done.stdout
    for option in set(re.findall(r"`(--[a-z-]+)", PAGE)) - {"--url"}:
        assert option in done.stdout, option
