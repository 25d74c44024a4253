"""A bare openbox desktop that knows only the applications a test makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deskhand.testing import XServer, window_manager
from tests.commands import environment


@pytest.fixture
def applications(tmp_path: Path) -> Path:
    """A data directory of the test's own, with nothing in it: the user's, which comes first."""
    directory = tmp_path / "data" / "applications"
    directory.mkdir(parents=True)
    (tmp_path / "system").mkdir()
    # Without a theme openbox ends.
    (tmp_path / "system" / "themes").symlink_to("/usr/share/themes")
    return directory


@pytest.fixture
def desktop(display: XServer, applications: Path) -> Iterator[XServer]:
    """openbox, and only the applications of the test. What is launched gets its environment from there."""
    server = replace(display, env=own(display, applications))
    with window_manager(server):
        yield server


def own(server: XServer | None, applications: Path, **more: str) -> dict[str, str]:
    """An environment that knows only those applications, and those in ``system/applications`` beside ``data``."""
    home = str(applications.parent.parent)
    more = {"XDG_DATA_DIRS": home + "/system", "HOME": home, "LC_ALL": "C.UTF-8", **more}
    return environment(server, XDG_DATA_HOME=str(applications.parent), **more)
