"""Panels: which of them may hide, and that a window that covers one is waited for until it has."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator

import pytest
from tests.xservers import put_pixels, until

from deskhand.hand import docks
from deskhand.hand.ping import Pings
from deskhand.hand.screen import Screen
from deskhand.hand.screen_watch import ScreenWatch
from deskhand.hand.settle import Input, wait_until_settled
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer

LONG = 20.0
WM_NORMAL_HINTS, WM_SIZE_HINTS = 40, 41  # X11 Protocol, Appendix B, Predefined atoms


@pytest.fixture
def conn(openbox_display: XServer) -> Iterator[Connection]:
    with Connection.open(openbox_display.display) as opened:
        yield opened


@pytest.fixture
def panel(openbox_display: XServer) -> Iterator[Connection]:
    """The client that shows panels."""
    with Connection.open(openbox_display.display) as opened:
        yield opened


def placed(panel: Connection, x: int, y: int, width: int, height: int, background: int) -> int:
    """A window that the window manager leaves where it is."""
    window = core.create_window(panel, x, y, width, height, override_redirect=False, background=background)
    core.change_property(
        panel, window, WM_NORMAL_HINTS, WM_SIZE_HINTS, 32, struct.pack("=18I", 1, x, y, width, height, *[0] * 13)
    )
    return window


def dock(panel: Connection, x: int, y: int, width: int, height: int, strut: bool = False) -> int:
    window = placed(panel, x, y, width, height, 0x335577)
    kind, dock_type = panel.atoms(["_NET_WM_WINDOW_TYPE", "_NET_WM_WINDOW_TYPE_DOCK"])
    core.change_property(panel, window, kind, core.ATOM_ATOM, 32, struct.pack("=I", dock_type))
    if strut:
        sides = struct.pack("=4I", 0, 0, 0, height)
        core.change_property(panel, window, panel.atom("_NET_WM_STRUT"), core.ATOM_CARDINAL, 32, sides)
    core.map_window(panel, window)
    panel.sync()
    listed = panel.atom("_NET_CLIENT_LIST")
    until(lambda: window in core.get_property(panel, panel.root, listed).cardinals())
    return window


def test_only_docks_that_reserve_nothing_and_are_shown(conn: Connection, panel: Connection) -> None:
    assert docks.hiding_docks(conn) == []
    dock(panel, 0, 760, 1280, 40, strut=True)
    dock(panel, 0, 0, 1280, 4)  # hidden already
    dock(panel, 300, 869, 400, 48)  # the same, as xfce4-panel does it: off the screen
    assert docks.hiding_docks(conn) == []
    dock(panel, 300, 700, 400, 48)
    assert docks.hiding_docks(conn) == [(300, 700, 400, 48)]


def test_one_that_ends_meanwhile_is_left_out(conn: Connection, panel: Connection) -> None:
    window = dock(panel, 300, 700, 400, 48)
    listed = core.get_property(conn, conn.root, conn.atom("_NET_CLIENT_LIST")).cardinals()
    core.destroy_window(panel, window)
    panel.sync()
    core.change_property(
        conn, conn.root, conn.atom("_NET_CLIENT_LIST"), core.ATOM_WINDOW, 32, struct.pack(f"={len(listed)}I", *listed)
    )
    assert docks.hiding_docks(conn) == []


def test_a_panel_that_a_window_covers_is_waited_for(conn: Connection, panel: Connection) -> None:
    """It hides a good while later, when all has been quiet for long."""
    covered = dock(panel, 300, 700, 400, 48)
    screen, pings = Screen(conn), Pings(conn)
    hidden = threading.Event()

    def hide() -> None:
        core.unmap_window(panel, covered)
        panel.sync()
        hidden.set()

    with ScreenWatch(conn, screen) as watch:
        window = placed(panel, 200, 300, 600, 480, 0xFFFFFF)
        core.map_window(panel, window)
        put_pixels(panel, window, 10, 10, 50, 50, 0xFF)
        timer = threading.Timer(0.3, hide)
        timer.start()
        verdict = wait_until_settled(conn, pings, watch, Input(time.monotonic(), []), LONG)
        after = screen.capture().rgb()
        timer.join()
    assert verdict.outcome == "settled"
    assert hidden.is_set()
    conn.sync()
    assert screen.capture().rgb() == after
