"""The X server fixture itself."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from deskhand.desktop.readiness import supporting_window
from deskhand.hand.errors import NoDisplay, SetupError
from deskhand.hand.state import process_start_time
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer, window_manager, xvfb


def test_size_depth_and_an_end_without_remains() -> None:
    with xvfb(width=640, height=480, depth=16) as server:
        with Connection.open(server.display) as connection:
            geometry = core.get_geometry(connection, connection.root)
            assert (geometry.width, geometry.height, geometry.depth) == (640, 480, 16)
        assert server.env["DISPLAY"] == server.display != os.environ.get("DISPLAY")
    assert process_start_time(server.pid) is None
    assert not os.path.lexists(f"/tmp/.X11-unix/X{server.number}")
    assert not os.path.lexists(f"/tmp/.X{server.number}-lock")


def test_several_at_once() -> None:
    with xvfb() as one, xvfb() as two:
        assert one.display != two.display


def test_a_server_with_a_cookie_refuses_clients_without(tmp_path: Path) -> None:
    with xvfb(auth=True) as server:
        assert server.xauthority is not None
        with Connection.open(server.display, server.xauthority):
            pass
        with pytest.raises(NoDisplay):
            Connection.open(server.display, str(tmp_path / "none"))
    assert not os.path.exists(server.xauthority)


def test_a_server_that_does_not_start_says_why() -> None:
    with pytest.raises(SetupError, match="Xvfb did not start: "), xvfb(depth=77):
        pass


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_server_that_was_killed_or_stopped_is_ended(number: signal.Signals) -> None:
    with xvfb() as server:
        os.kill(server.pid, number)
    assert process_start_time(server.pid) is None


def test_a_window_manager_is_up(openbox_display: XServer) -> None:
    with Connection.open(openbox_display.display) as connection:
        assert supporting_window(connection)


def test_no_window_manager_without_asking(display: XServer) -> None:
    with Connection.open(display.display) as connection:
        assert supporting_window(connection) == 0


def test_a_window_manager_that_is_not_installed(display: XServer) -> None:
    with pytest.raises(SetupError, match="no-such-wm is not installed"), window_manager(display, "no-such-wm"):
        pass
