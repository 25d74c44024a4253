"""The windows that the tests of waiting look at: one fixture process each, with the focus, and quiet at first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deskhand.hand.ping import ROOT_EVENTS
from deskhand.hand.windows import list_windows
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer
from tests.xservers import until

FIXTURES = Path(__file__).parent / "fixtures"
PYTHON = "/usr/bin/python3"
_MODULES = {"gtk": "gi", "tk": "tkinter"}


@contextmanager
def settle_window(
    server: XServer, connection: Connection, toolkit: str, mode: str, title: str | None = None
) -> Iterator[tuple[int, int]]:
    """The id and pid of a window of ``fixtures/settle_<toolkit>.py`` once it is shown and has the focus."""
    if subprocess.run([PYTHON, "-c", f"import {_MODULES[toolkit]}"], capture_output=True, check=False).returncode:
        pytest.skip(f"{PYTHON} has no {_MODULES[toolkit]}")
    process = subprocess.Popen(
        [PYTHON, str(FIXTURES / f"settle_{toolkit}.py"), mode], env=server.env, stderr=sys.stderr
    )
    core.select_input(connection, connection.root, ROOT_EVENTS)
    try:
        window = until(lambda: _focused(connection, title or mode), 30)
        yield window, process.pid
    finally:
        process.kill()
        process.wait()


def _focused(connection: Connection, title: str) -> int:
    for window in list_windows(connection):
        if window["title"] == title and window["active"]:
            return int(window["id"])
    return 0
