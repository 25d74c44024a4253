"""Every case on a display of this machine, and once more over HTTP; desktops with applications of the tests' own.

Over HTTP the first of a test's parameters is ``slow``, and the others are ``long``: each case is asked there, and all
of it now and then.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from deskhand.testing import XServer, window_manager, xvfb
from tests.cases.ways import OnTheDisplay, OverHttp, Way
from tests.own_desktop import applications, own

__all__ = ["applications"]

_OVER_HTTP = "over-http"


@pytest.fixture(params=["here", pytest.param(_OVER_HTTP, marks=pytest.mark.long)])
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    """How the commands reach the display. What serves it ends after it, as nothing then waits for a stopped server."""
    if request.param == "here":
        yield OnTheDisplay()
        return
    for module in ("fastapi", "uvicorn", "httpx2"):
        pytest.importorskip(module)
    with ExitStack() as stack:
        yield OverHttp(stack)


@pytest.fixture
def tmp_path(tmp_path: Path, way: Way) -> Iterator[Path]:
    """Over HTTP applications run as another account, which may not enter pytest's own directories."""
    if not way.over_http:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="deskhand-test-") as directory:
        os.chmod(directory, 0o777)
        yield Path(directory)


@pytest.fixture
def display(way: Way) -> Iterator[XServer]:
    with xvfb() as server:
        yield way.reach(server)


@pytest.fixture
def openbox_display(way: Way) -> Iterator[XServer]:
    with xvfb() as server, window_manager(server):
        yield way.reach(server)


@pytest.fixture
def desktop(way: Way, applications: Path) -> Iterator[XServer]:
    """openbox, and only the applications of the test. What is launched gets its environment from there."""
    with xvfb() as server:
        own_server = way.reach(server, own(server, applications))
        with window_manager(own_server):
            yield own_server
