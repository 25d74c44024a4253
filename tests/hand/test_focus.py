"""The focus gate: which window gets keys, and when none does."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.toolkits import toolkit_window

from deskhand.hand.errors import ActionFailed
from deskhand.hand.focus import client_of, keyboard_target, manager_window
from deskhand.hand.held import Ledger
from deskhand.hand.keyboard import Keyboard, parse_keys
from deskhand.hand.ping import Pings
from deskhand.hand.x11 import Connection, core, xtest
from deskhand.testing import XServer


@contextlib.contextmanager
def plain_window(conn: Connection, focused: bool = True) -> Iterator[int]:
    window = core.create_window(conn, 40, 40, 200, 100, background=0xFFFFFF)
    utf8 = conn.atom("UTF8_STRING")
    core.change_property(conn, window, conn.atom("_NET_WM_NAME"), utf8, 8, "plän".encode())
    core.map_window(conn, window)
    conn.sync()
    if focused:
        core.set_input_focus(conn, window)
    conn.sync()
    yield window
    core.destroy_window(conn, window)


def test_names_the_window_and_its_title(openbox_display: XServer, tmp_path: Path) -> None:
    with (
        toolkit_window(openbox_display, "gtk", tmp_path / "log"),
        Connection.open(openbox_display.display) as conn,
    ):
        target = keyboard_target(conn)
        assert target.title == "gtk text"
        assert target.grabbed is None
        assert target.facts() == {"window": target.top_level, "title": "gtk text"}
        state = core.get_property(conn, target.top_level, conn.atom("WM_STATE"))
        assert state.type
        assert client_of(conn, target.window) == client_of(conn, target.top_level)


def test_focus_inside_a_window_is_that_window(display: XServer) -> None:
    with Connection.open(display.display) as conn, plain_window(conn) as window:
        target = keyboard_target(conn)
        assert (target.window, target.top_level, target.title, target.by_pointer) == (window, window, "plän", False)


@pytest.mark.parametrize(("focus", "told"), [(0, "no window has"), ("root", "on the root window")])
def test_refuses_nothing_and_root(display: XServer, focus: object, told: str) -> None:
    with Connection.open(display.display) as conn:
        core.set_input_focus(conn, conn.root if focus == "root" else 0)
        with pytest.raises(ActionFailed, match=told) as refused:
            keyboard_target(conn)
        assert refused.value.sent == "none"


def test_without_a_window_manager_keys_follow_the_pointer(display: XServer) -> None:
    with Connection.open(display.display) as conn:
        core.set_input_focus(conn, core.FOCUS_POINTER_ROOT)
        xtest.fake_input(conn, xtest.MOTION, 0, 600, 600)
        with pytest.raises(ActionFailed, match="under the pointer"):
            keyboard_target(conn)
        with plain_window(conn, focused=False) as window:
            xtest.fake_input(conn, xtest.MOTION, 0, 100, 90)
            target = keyboard_target(conn)
            assert (target.window, target.by_pointer) == (window, True)
            assert target.facts() == {"window": window, "title": "plän", "focus": "pointer"}


def test_with_a_window_manager_pointer_root_is_refused(display: XServer) -> None:
    """A stand-in for the window manager, as real ones take the focus back at once."""
    with (
        Connection.open(display.display) as manager,
        Connection.open(display.display) as conn,
        plain_window(conn, focused=False),
    ):
        window = core.create_window(manager)
        check = manager.atom("_NET_SUPPORTING_WM_CHECK")
        for owner in (window, manager.root):
            core.change_property(manager, owner, check, core.ATOM_WINDOW, 32, window.to_bytes(4, sys.byteorder))
        manager.sync()
        xtest.fake_input(conn, xtest.MOTION, 0, 100, 90)
        core.set_input_focus(conn, core.FOCUS_POINTER_ROOT)
        with pytest.raises(ActionFailed, match="PointerRoot"):
            keyboard_target(conn)


def test_the_window_managers_own_window_is_refused_and_nothing_is_sent(openbox_display: XServer) -> None:
    with Connection.open(openbox_display.display) as conn:
        core.set_input_focus(conn, manager_window(conn))
        conn.sync()
        keyboard = Keyboard(conn, Pings(conn), Ledger(conn))
        with pytest.raises(ActionFailed, match="window manager's own window") as refused:
            keyboard.key(parse_keys("a"))
        assert refused.value.sent == "none"
        with pytest.raises(ActionFailed, match="window manager's own window") as refused:
            keyboard.type_text("hidden words")
        assert refused.value.sent == "none"
        assert "hidden" not in str(refused.value)


def test_a_stale_window_manager_property_is_no_window_manager(display: XServer) -> None:
    with Connection.open(display.display) as conn:
        core.change_property(
            conn,
            conn.root,
            conn.atom("_NET_SUPPORTING_WM_CHECK"),
            core.ATOM_WINDOW,
            32,
            (0x1234567).to_bytes(4, sys.byteorder),
        )
        assert manager_window(conn) == 0


def test_a_window_that_draws_nothing_is_no_menu(display: XServer) -> None:
    # As mutter's guard window: the manager's, over the whole screen, below all others.
    with Connection.open(display.display) as manager, Connection.open(display.display) as conn:
        check = core.create_window(manager)
        name = manager.atom("_NET_SUPPORTING_WM_CHECK")
        for window in (manager.root, check):
            core.change_property(manager, window, name, core.ATOM_WINDOW, 32, check.to_bytes(4, sys.byteorder))
        guard = core.create_window(manager, 0, 0, 1280, 800, input_only=True)
        core.map_window(manager, guard)
        manager.sync()
        assert manager_window(conn) == check
        with plain_window(conn) as window:
            target = keyboard_target(conn)
            assert (target.window, target.grabbed, target.title) == (window, None, "plän")


def test_an_open_menu_gets_the_keys_and_is_named(openbox_display: XServer, tmp_path: Path) -> None:
    with (
        toolkit_window(openbox_display, "gtk", tmp_path / "log") as window,
        Connection.open(openbox_display.display) as conn,
    ):
        keyboard = Keyboard(conn, Pings(conn), Ledger(conn))
        keyboard.key(parse_keys("F10"))
        assert window.until(lambda w: w.all("menu"))
        assert conn.wait(lambda: keyboard_target(conn).grabbed == "menu", 5)
        facts = keyboard.key(parse_keys("Down"))
        assert facts["grabbed"] == "menu"
        assert facts["window"] != keyboard_target(conn).top_level
        keyboard.key(parse_keys("Return"))
        assert window.until(lambda w: w.all("chosen"))
        assert conn.wait(lambda: keyboard_target(conn).grabbed is None, 5)


def test_the_window_managers_menu_counts(openbox_display: XServer) -> None:
    with Connection.open(openbox_display.display) as conn:
        keyboard = Keyboard(conn, Pings(conn), Ledger(conn))
        xtest.fake_input(conn, xtest.MOTION, 0, 600, 400)
        xtest.fake_input(conn, xtest.BUTTON_PRESS, 3)
        xtest.fake_input(conn, xtest.BUTTON_RELEASE, 3)
        conn.sync()

        def grabbed() -> bool:
            with contextlib.suppress(ActionFailed):
                return keyboard_target(conn).grabbed == "menu"
            return False

        assert conn.wait(grabbed, 5)
        keyboard.key(parse_keys("Escape"))
        assert conn.wait(lambda: not grabbed(), 5)
