"""Chords, held keys and what they leave behind, on real toolkits."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.toolkits import ToolkitWindow, toolkit_window

from deskhand.hand.errors import ActionFailed
from deskhand.hand.held import Ledger
from deskhand.hand.keyboard import Keyboard, parse_keys
from deskhand.hand.ping import Pings
from deskhand.hand.x11 import Connection, core, xkb, xtest
from deskhand.testing import XServer


@contextlib.contextmanager
def keyboard_on(server: XServer) -> Iterator[Keyboard]:
    with Connection.open(server.display) as conn:
        ledger = Ledger(conn)
        xkb.use(conn)
        yield Keyboard(conn, Pings(conn), ledger)
        assert ledger.held == []
        assert core.query_keymap(conn) == []


@pytest.fixture
def gtk(openbox_display: XServer, tmp_path: Path) -> Iterator[ToolkitWindow]:
    with toolkit_window(openbox_display, "gtk", tmp_path / "log") as window:
        yield window


def set_layout(server: XServer, layout: str, group: int = 0) -> None:
    subprocess.run(["setxkbmap", "-display", server.display, "-layout", layout], check=True)
    with Connection.open(server.display) as conn:
        xkb.use(conn)
        xkb.latch_lock_state(conn, lock_group=True, group=group)
        conn.sync()


@pytest.mark.parametrize(
    ("keys", "received"),
    [
        ("a", ["a"]),
        ("A", ["A"]),
        ("shift+a", ["A"]),
        ("Return", ["Return"]),
        ("enter", ["Return"]),
        ("esc", ["Escape"]),
        ("plus", ["plus"]),
        ("+", ["plus"]),
        ("minus", ["minus"]),
        ("PageUp", ["Page_Up"]),
        ("é", ["eacute"]),
        ("漢", ["U+6F22"]),
        ("XF86AudioPlay", ["AudioPlay"]),
        ("kp_7", ["KP_7"]),
        ("F12", ["F12"]),
        ("a+B", ["a", "B"]),
        ("B+a", ["B", "a"]),
    ],
)
def test_a_key_means_what_it_says(openbox_display: XServer, gtk: ToolkitWindow, keys: str, received: list[str]) -> None:
    with keyboard_on(openbox_display) as keyboard:
        facts = keyboard.key(parse_keys(keys))
    assert facts["title"] == "gtk text"
    assert gtk.until(lambda w: len(w.keys()) >= len(received)), gtk.lines
    assert gtk.keys() == received


LAYOUTS = [("us", 0), ("de", 0), ("fr", 0), ("ru", 0), ("gr", 0), ("us,ru", 1), ("ru,us", 0), ("us,de", 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "group"), LAYOUTS)
@pytest.mark.parametrize("kind", ["gtk", "qt"])
def test_shortcuts_work_under_every_layout(
    openbox_display: XServer, tmp_path: Path, kind: str, layout: str, group: int
) -> None:
    set_layout(openbox_display, layout, group)
    names = {"gtk": ["<Control>plus", "<Control><Shift>t"], "qt": ["Ctrl++", "Ctrl+Shift+T"]}[kind]
    with (
        toolkit_window(openbox_display, kind, tmp_path / "log") as window,
        keyboard_on(openbox_display) as keyboard,
    ):
        for chord in ("ctrl+c", "ctrl++", "ctrl+shift+t"):
            keyboard.key(parse_keys(chord))
        assert window.until(lambda w: len(w.all("accelerator")) >= len(names)), window.lines
        # Qt's editor takes Ctrl+C for itself and says so by its control character.
        assert window.all("accelerator") == (["<Control>c"] if kind == "gtk" else []) + names or window.until(
            lambda w: len(w.all("accelerator")) == 3
        )
        if kind == "qt":
            assert "\x03" in window.all("key")


@pytest.mark.parametrize(("layout", "group", "locks"), [("us", 0, 2), ("us", 0, 16), ("us,ru", 1, 18)])
def test_locks_do_not_change_keys_and_stay_as_they_were(
    openbox_display: XServer, gtk: ToolkitWindow, layout: str, group: int, locks: int
) -> None:
    set_layout(openbox_display, layout, group)
    with keyboard_on(openbox_display) as keyboard, Connection.open(openbox_display.display) as conn:
        xkb.use(conn)
        xkb.latch_lock_state(conn, affect_locks=255, locks=locks)
        before = xkb.get_state(conn)
        for keys in ("a", "A", "ctrl+c", "KP_Home", "kp_7"):
            keyboard.key(parse_keys(keys))
        assert xkb.get_state(conn) == before
    assert gtk.until(lambda w: len(w.keys()) >= 5)
    assert gtk.keys() == ["a", "A", "c", "KP_Home", "KP_7"]
    assert gtk.all("accelerator") == ["<Control>c"]


def test_caps_lock_itself_can_be_pressed(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard, Connection.open(openbox_display.display) as conn:
        xkb.use(conn)
        keyboard.key(parse_keys("capslock"))
        assert xkb.get_state(conn).locked_modifiers == 2
        keyboard.key(parse_keys("capslock"))
        assert xkb.get_state(conn).locked_modifiers == 0


def test_press_and_release_are_apart(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard:
        keyboard.key(parse_keys("x"), repeat=10)
        keyboard.key(parse_keys("y"), hold_ms=60)
    assert gtk.until(lambda w: len(w.all("released")) >= 11)
    times = [line["time"] for line in gtk.lines if "key" in line or "released" in line]
    gaps = [times[index + 1] - times[index] for index in range(len(times) - 1)]
    assert all(gap >= 8 for gap in gaps[:19]), gaps
    assert gaps[-1] >= 60
    assert gtk.text == "x" * 10 + "y"


def test_a_held_key_repeats_and_says_so(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard:
        assert keyboard.hold(parse_keys("h"), 1.0)["repeats"] is True
        assert keyboard.hold(parse_keys("shift"), 0.02)["repeats"] is False
    assert gtk.until(lambda w: "Shift_L" in w.all("released"))
    assert len(gtk.text) > 2
    assert set(gtk.text) == {"h"}


def test_key_down_stays_down_for_the_next_keys(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard:
        assert keyboard.down(parse_keys("shift")) == {"pressed": ["Shift_L"]}
        keyboard.key(parse_keys("a"))
        assert keyboard.down(parse_keys("shift")) == {"pressed": []}
        keyboard.key(parse_keys("shift+b"))
        keyboard.key(parse_keys("c"))
        assert keyboard.up(parse_keys("shift")) == {"released": ["Shift_L"]}
        assert keyboard.up(parse_keys("shift")) == {"released": []}
        keyboard.key(parse_keys("d"))
    assert gtk.shows("ABCd")


def test_what_is_not_on_the_map_can_not_stay_down(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard, pytest.raises(ActionFailed, match="can not stay down") as refused:
        keyboard.down(parse_keys("é"))
    assert refused.value.sent == "none"


def test_a_modifier_the_keyboard_lacks_is_refused(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard:
        with Connection.open(openbox_display.display) as conn:
            for code, row in enumerate(core.get_keyboard_mapping(conn, 8, 248), 8):
                if {0xFFEB, 0xFFEC}.intersection(row):
                    core.change_keyboard_mapping(conn, code, [(0,)])
            conn.sync()
        with pytest.raises(ActionFailed, match="no Super_L key"):
            keyboard.key(parse_keys("cmd+a"))
    assert gtk.keys() == []


def test_a_key_of_no_layout_leaves_the_map_as_it_was(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard, Connection.open(openbox_display.display) as conn:
        xkb.use(conn)
        before = xkb.get_map(conn)
        keyboard.key(parse_keys("ctrl+ж"))
        assert xkb.get_map(conn) == before
        assert not core.get_property(conn, conn.root, conn.atom("_DESKHAND_BORROWED")).type
    assert gtk.until(lambda w: w.keys() == ["Cyrillic_zhe"])


def test_a_modifier_somebody_holds_is_named(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with Connection.open(openbox_display.display) as stranger:
        xtest.fake_input(stranger, xtest.KEY_PRESS, 50)
        stranger.sync()
    with keyboard_on(openbox_display) as keyboard:
        assert keyboard.key(parse_keys("a"))["held_by_others"] == ["Shift_L"]
        keyboard.up(parse_keys("shift"))
        assert "held_by_others" not in keyboard.key(parse_keys("a"))


def test_a_key_somebody_left_down_can_be_released(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with Connection.open(openbox_display.display) as stranger:
        xtest.fake_input(stranger, xtest.KEY_PRESS, 50)
        stranger.sync()
    with keyboard_on(openbox_display) as keyboard:
        assert keyboard.up(parse_keys("shift")) == {"released": ["Shift_L"]}


def test_wrong_numbers_are_refused(openbox_display: XServer) -> None:
    with keyboard_on(openbox_display) as keyboard:
        with pytest.raises(ValueError, match="once or more"):
            keyboard.key(parse_keys("a"), repeat=0)
        for seconds in (-1.0, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="0 to 600"):
                keyboard.hold(parse_keys("a"), seconds)
