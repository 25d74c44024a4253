"""Fixtures of all tests: each gives something real and ends it. ``os.environ`` is left alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deskhand.desktop import DesktopState, start_desktop, stop_desktop
from deskhand.testing import XServer, window_manager, xvfb


@pytest.fixture
def display() -> Iterator[XServer]:
    """A fresh X server of 1280x800 pixels without a window manager."""
    with xvfb() as server:
        yield server


@pytest.fixture
def openbox_display() -> Iterator[XServer]:
    """A fresh X server with openbox."""
    with xvfb() as server, window_manager(server, "openbox"):
        yield server


@pytest.fixture(scope="session")
def xfce() -> Iterator[DesktopState]:
    """A whole XFCE desktop, one for all tests of this process: leave it as you found it. Mark such tests ``slow``."""
    desktop = start_desktop("xfce")
    try:
        yield desktop
    finally:
        stop_desktop(desktop.display)
