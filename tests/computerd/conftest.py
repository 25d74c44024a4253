"""A display with openbox and a daemon on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deskhand.testing import XServer, window_manager, xvfb
from tests.computerd.daemons import RunningDaemon, daemon

pytest.importorskip("fastapi")


@pytest.fixture(scope="module")
def server() -> Iterator[XServer]:
    """An X server with openbox that asks for a cookie; one for all tests of a file, as is the daemon."""
    with xvfb(auth=True) as server, window_manager(server):
        yield server


@pytest.fixture(scope="module")
def running(server: XServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon without a launcher."""
    with daemon(server, tmp_path_factory.mktemp("daemon")) as running:
        yield running
