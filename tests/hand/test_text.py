"""Exact text, on real toolkits, layouts, locks, under load, and after a killed process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.toolkits import ToolkitWindow, busy, toolkit_window

from deskhand.hand.borrowing import PROPERTY, KeyboardLoan, restore_borrowed
from deskhand.hand.errors import ActionFailed
from deskhand.hand.focus import keyboard_target
from deskhand.hand.held import Ledger
from deskhand.hand.keyboard import Keyboard, parse_keys
from deskhand.hand.keymap import Keymap
from deskhand.hand.ping import Pings
from deskhand.hand.text import check_text
from deskhand.hand.x11 import Connection, core, xkb, xtest
from deskhand.testing import XServer

#: 200 characters in seven scripts, with signs, capitals with accents, and characters beyond the first 65,536.
MIXED = (
    "Ünïcödé ÅåÉéÑñ ØøŁł ŠšŽž Ğğİı ẞß Þþ Œœ Ĳĳ "
    "Съешь ещё этих мягких булок ЖЮЯ "
    "Ξεσκεπάζω τὴν ψυχοφθόρα Ω "
    "שלום עולם مرحبا بالعالم "
    "漢字仮名交じり文 ひらがな カタカナ 한국어 한글 "
    "€£¥ «»„“ … — ½ ≠ ∞ √ → ☃ "
    "😀🎉🦊𝔘𝕟𝕚 e\u0301 n\u0303 "
    "#!/bin/sh -e 'a' \"b\" `c` $(d) \\e {f} [g] ~ ^ | <h>"
)
PLAIN = "Hello, World! -1.5 x --help $(id) $HOME `x` 'a' \"b\" \\ %s {}[]<>|@#$%&*()_+-=;:/?~^ 0123456789"


@contextlib.contextmanager
def keyboard_on(server: XServer) -> Iterator[Keyboard]:
    with Connection.open(server.display) as conn:
        ledger = Ledger(conn)
        xkb.use(conn)
        keyboard = Keyboard(conn, Pings(conn), ledger)
        before = Keymap.read(conn)
        yield keyboard
        assert Keymap.read(conn) == before, "the map is not as it was"
        assert not core.get_property(conn, conn.root, conn.atom(PROPERTY)).type


@pytest.fixture
def gtk(openbox_display: XServer, tmp_path: Path) -> Iterator[ToolkitWindow]:
    with toolkit_window(openbox_display, "gtk", tmp_path / "log") as window:
        yield window


def set_layout(server: XServer, layout: str, locks: int = 0, group: int = 0) -> xkb.State:
    subprocess.run(["setxkbmap", "-display", server.display, "-layout", layout], check=True)
    with Connection.open(server.display) as conn:
        xkb.use(conn)
        xkb.latch_lock_state(conn, affect_locks=255, locks=locks, lock_group=True, group=group)
        return xkb.get_state(conn)


def state_of(server: XServer) -> xkb.State:
    with Connection.open(server.display) as conn:
        xkb.use(conn)
        return xkb.get_state(conn)


def empty(window: ToolkitWindow, keyboard: Keyboard) -> None:
    keyboard.key(parse_keys("ctrl+a"))
    keyboard.key(parse_keys("Delete"))
    assert window.shows("")


# -- what can be typed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "a\nb\tc", "a\r\nb", "é😀\u0301", "\u00a0\u00ad\u200d", "\ufffd\uffff"])
def test_text_that_can_be_typed(text: str) -> None:
    check_text(text)


@pytest.mark.parametrize(
    ("text", "position"), [("ab\x00", 3), ("\x1b[A", 1), ("a\rb", 2), ("\x7f", 1), ("\x85", 1), ("ab\ud83d", 3)]
)
def test_text_that_can_not_be_typed_is_refused_by_position(text: str, position: int) -> None:
    with pytest.raises(ValueError, match=rf"^character {position} of the text "):
        check_text(text)


@given(st.text())
def test_a_refusal_never_shows_the_text(text: str) -> None:
    secret = "hunter2" + text + "\x07"
    with pytest.raises(ValueError, match="of the text is") as refused:
        check_text(secret)
    assert "hunter2" not in str(refused.value)


# -- exact ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("times", [20])
def test_200_mixed_characters_are_exact(openbox_display: XServer, gtk: ToolkitWindow, times: int) -> None:
    assert len(MIXED) >= 200
    with keyboard_on(openbox_display) as keyboard:
        for _ in range(times):
            facts = keyboard.type_text(MIXED)
            assert facts["confirmed"] is True
            assert facts["typed"] == len(MIXED)
            assert gtk.shows(MIXED), gtk.text
            empty(gtk, keyboard)


@pytest.mark.slow
def test_200_mixed_characters_are_exact_on_a_busy_machine(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard, busy():
        for _ in range(10):
            facts = keyboard.type_text(MIXED)
            assert gtk.shows(MIXED, 20), gtk.text
            assert facts["confirmed"] is True
            empty(gtk, keyboard)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gtk", "gtk4", "qt", "qt6", "tk"])
@pytest.mark.parametrize(
    ("layout", "locks", "group"),
    [("us", 18, 0), ("de", 0, 0), ("fr", 2, 0), ("ru", 0, 0), ("gr", 0, 0), ("us,ru", 2, 1), ("us,de,ru", 0, 2)],
)
def test_exact_under_every_layout_and_lock(
    openbox_display: XServer, tmp_path: Path, kind: str, layout: str, locks: int, group: int
) -> None:
    before = set_layout(openbox_display, layout, locks, group)
    with toolkit_window(openbox_display, kind, tmp_path / "log") as window, keyboard_on(openbox_display) as keyboard:
        text = MIXED if kind != "tk" else PLAIN + "жЖ"
        facts = keyboard.type_text(text)
        if facts["confirmed"]:
            assert window.shows(text), window.text
        else:
            assert kind == "tk"
        assert state_of(openbox_display) == before


def test_on_the_live_map_nothing_is_borrowed(openbox_display: XServer, tmp_path: Path) -> None:
    """Tk answers no ping, and needs none where every character has a key, in either group."""
    set_layout(openbox_display, "us,ru")
    text = PLAIN + " Привет, мир!"
    with toolkit_window(openbox_display, "tk", tmp_path / "log") as window, keyboard_on(openbox_display) as keyboard:
        facts = keyboard.type_text(text)
        assert "borrowed" not in facts
        assert facts["confirmed"] is True
        assert window.shows(text), window.text


def test_borrowed_characters_of_a_silent_window_are_not_claimed(openbox_display: XServer, tmp_path: Path) -> None:
    with toolkit_window(openbox_display, "tk", tmp_path / "log"), keyboard_on(openbox_display) as keyboard:
        facts = keyboard.type_text("ÅåÉéÑñ ØøŁł")
        assert facts["confirmed"] is False
        assert facts["borrowed"] == 10


@pytest.mark.parametrize("text", ["line1\nline2", "line1\r\nline2"])
def test_newline_is_one_return(openbox_display: XServer, tmp_path: Path, text: str) -> None:
    with toolkit_window(openbox_display, "tk", tmp_path / "log") as window, keyboard_on(openbox_display) as keyboard:
        keyboard.type_text(text + "\tend")
        assert window.shows("line1\nline2\tend"), window.text
        assert window.keys().count("Return") == 1
        assert "Linefeed" not in window.all("key")


def test_without_a_window_manager(display: XServer, tmp_path: Path) -> None:
    """The focus is on PointerRoot then, and keys go to the window under the pointer."""
    with (
        Connection.open(display.display) as conn,
        toolkit_window(display, "gtk", tmp_path / "log", focused=False) as window,
    ):
        (child,) = [w for w in core.query_tree(conn, conn.root)[2] if core.get_geometry(conn, w).width > 100]
        box = core.get_geometry(conn, child)
        xtest.fake_input(conn, xtest.MOTION, 0, box.x + 50, box.y + 50)
        conn.sync()
        with keyboard_on(display) as keyboard:
            facts = keyboard.type_text(MIXED)
            assert (facts["focus"], facts["window"], facts["confirmed"]) == ("pointer", child, True)
            assert window.shows(MIXED), window.text


def test_terminal(openbox_display: XServer, tmp_path: Path) -> None:
    out = tmp_path / "typed"
    shell = ["sh", "-c", f"stty -echo; echo > '{out}.ready'; cat > '{out}'"]
    xterm = subprocess.Popen(
        ["xterm", "-u8", "-T", "xterm", "-e", *shell], env={**openbox_display.env, "LC_ALL": "C.UTF-8"}
    )
    try:
        with keyboard_on(openbox_display) as keyboard, Connection.open(openbox_display.display) as conn:

            def ready() -> bool:
                with contextlib.suppress(ActionFailed):
                    return keyboard_target(conn).title == "xterm" and Path(f"{out}.ready").exists()
                return False

            deadline = time.monotonic() + 10
            while not ready() and time.monotonic() < deadline:
                time.sleep(0.02)  # the file has no event
            facts = keyboard.type_text(PLAIN + "\n")
            assert facts["confirmed"] is True
            keyboard.key(parse_keys("ctrl+d"))
            xterm.wait(10)
        assert out.read_text() == PLAIN + "\n"
    finally:
        xterm.kill()
        xterm.wait()


# -- keys held meanwhile ----------------------------------------------------------------------------------------------


def test_our_own_held_modifier_is_lifted_and_put_back(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard:
        keyboard.down(parse_keys("shift"))
        facts = keyboard.type_text("abc é 1")
        assert "lifted" not in facts
        keyboard.key(parse_keys("x"))
        keyboard.up(parse_keys("shift"))
        assert gtk.shows("abc é 1X"), gtk.text


def test_a_strangers_modifier_is_lifted_and_named(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with Connection.open(openbox_display.display) as stranger:
        xtest.fake_input(stranger, xtest.KEY_PRESS, 50)
        stranger.sync()
    with keyboard_on(openbox_display) as keyboard, Connection.open(openbox_display.display) as conn:
        facts = keyboard.type_text("abc1")
        assert facts["lifted"] == ["Shift_L"]
        assert core.query_keymap(conn) == []
        assert gtk.shows("abc1"), gtk.text


def test_a_held_letter_does_not_repeat_into_the_text(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard:
        keyboard.down(parse_keys("z"))
        keyboard.type_text("abz" * 20)
        keyboard.up(parse_keys("z"))
        assert gtk.until(lambda w: len(w.text) >= 61)
        assert gtk.text.strip("z") == ("abz" * 20).strip("z")


# -- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_window_that_takes_the_focus_stops_the_text(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    """The text is long, and another client moves the focus as soon as the first of it has arrived."""
    code = (
        "import sys; from deskhand.hand.x11 import Connection, core\n"
        "with Connection.open(sys.argv[1]) as c:\n"
        " w = core.create_window(c, 600, 500, 50, 50); core.map_window(c, w); c.sync()\n"
        " down = set(); print('up', flush=True)\n"
        " while not core.get_property(c, c.root, c.atom('_DESKHAND_HELD')).type: pass\n"
        " core.set_input_focus(c, w); c.sync(); sys.stdin.read()\n"
    )
    with keyboard_on(openbox_display) as keyboard:
        thief = subprocess.Popen(
            [sys.executable, "-c", code, openbox_display.display],
            env={**os.environ, "PYTHONPATH": "src"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert thief.stdout is not None
            assert thief.stdout.readline() == b"up\n"
            with pytest.raises(
                ActionFailed, match="of 200000 characters were typed: the keyboard focus moved"
            ) as failed:
                keyboard.type_text("secret!!" * 25000)
            assert 0 < failed.value.facts["typed"] < 200000
            assert failed.value.sent == "part"
            assert "secret" not in str(failed.value)
        finally:
            thief.communicate()


def test_what_was_sent_before_a_failure_is_exact(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard:
        with pytest.raises(ActionFailed, match="time was up") as failed:
            keyboard.type_text(MIXED * 5, time.monotonic())
        done = failed.value.facts["typed"]
        assert gtk.shows((MIXED * 5)[:done]), gtk.text


def test_a_deadline_ends_it_and_says_how_far_it_got(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard:
        with pytest.raises(ActionFailed, match=r"^\d+ of 4000 characters were typed: time was up") as failed:
            keyboard.type_text("x" * 4000, time.monotonic())
        done = failed.value.facts["typed"]
        assert 0 < done < 4000
        assert gtk.shows("x" * done)


@pytest.mark.slow
def test_a_window_that_hangs_is_not_confirmed(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with keyboard_on(openbox_display) as keyboard:
        keyboard.key(parse_keys("F9"))
        facts = keyboard.type_text("é", time.monotonic() + 2)
        assert facts["confirmed"] is False


def test_a_map_changed_by_somebody_else_is_an_error(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with Connection.open(openbox_display.display) as conn, Connection.open(openbox_display.display) as other:
        keyboard = Keyboard(conn, Pings(conn), Ledger(conn))

        def meddle(event: object) -> None:
            if getattr(event, "name", "") == "ClientMessage":  # an answer to the ping before the keys
                core.change_keyboard_mapping(other, 38, [(0x71, 0x51)])
                other.flush()

        with conn.subscribe(meddle), pytest.raises(ActionFailed, match="changed by another program"):
            keyboard.type_text("aé")


@pytest.mark.parametrize(("control", "name"), [(xkb.SLOW_KEYS, "Slow Keys"), (xkb.BOUNCE_KEYS, "Bounce Keys")])
def test_where_the_server_would_drop_keys_nothing_is_sent(
    openbox_display: XServer, gtk: ToolkitWindow, control: int, name: str
) -> None:
    with keyboard_on(openbox_display) as keyboard, Connection.open(openbox_display.display) as conn:
        extension = xkb.use(conn)
        change = struct.pack("=H18xIII64x", xkb.CORE_KEYBOARD, control, control, 0)  # XkbSetControls
        conn.send(extension.major, 7, change)
        conn.sync()
        assert xkb.enabled_controls(conn) & control
        with pytest.raises(ActionFailed, match=f"{name} is on") as refused:
            keyboard.type_text("book")
        assert refused.value.sent == "none"
        with pytest.raises(ActionFailed, match=f"{name} is on"):
            keyboard.key(parse_keys("Return"))
        assert gtk.keys() == []


def test_no_spare_keycode_is_an_error_before_anything_is_sent(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    with Connection.open(openbox_display.display) as conn:
        for code in Keymap.read(conn).spare():
            core.change_keyboard_mapping(conn, code, [(0x1000391,)])
        conn.sync()
        keyboard = Keyboard(conn, Pings(conn), Ledger(conn))
        with pytest.raises(ActionFailed, match="no spare keycode") as refused:
            keyboard.type_text("abcé")
        assert refused.value.sent == "none"
        assert gtk.keys() == []


# -- killed on the way ------------------------------------------------------------------------------------------------

_KILLED = """
import os, signal, sys
from deskhand.hand import text
from deskhand.hand.x11 import Connection
from deskhand.hand.ping import Pings
from deskhand.hand.focus import keyboard_target
from deskhand.hand.held import Ledger
from deskhand.hand.keyboard import Keyboard
conn = Connection.open(sys.argv[1])
done = []
send = text.TextTyping._press
def press(self, *a, **k):
    send(self, *a, **k)
    done.append(1)
    if len(done) == 10:
        conn.sync()
        os.kill(os.getpid(), signal.SIGKILL)
text.TextTyping._press = press
Keyboard(conn, Pings(conn), Ledger(conn)).type_text(sys.stdin.read())
"""


def kill_while_typing(server: XServer) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, server.display],
        env={**os.environ, "PYTHONPATH": "src"},
        input="ÉÉÉé漢字ЖЖЖ😀😀abc".encode(),
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


def test_a_killed_process_is_put_right_by_the_next(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    before = set_layout(openbox_display, "us,ru", locks=18, group=1)
    with Connection.open(openbox_display.display) as conn:
        map_before = Keymap.read(conn)
        kill_while_typing(openbox_display)
        assert Keymap.read(conn) != map_before
        assert xkb.get_state(conn) != before
        said = restore_borrowed(conn)
        assert len(said) == 2
        assert Keymap.read(conn) == map_before
        assert xkb.get_state(conn) == before
        assert not core.get_property(conn, conn.root, conn.atom(PROPERTY)).type
        assert restore_borrowed(conn) == []


def test_only_what_still_holds_our_values_is_put_back(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    set_layout(openbox_display, "us", locks=2)
    kill_while_typing(openbox_display)
    with Connection.open(openbox_display.display) as conn:
        (line,) = [json.loads(t) for t in core.get_property(conn, conn.root, conn.atom(PROPERTY)).value.splitlines()]
        code = int(next(iter(line["codes"])))
        core.change_keyboard_mapping(conn, code, [(0x1000416,)])
        xkb.use(conn)
        xkb.latch_lock_state(conn, affect_locks=255, locks=16)
        restore_borrowed(conn)
        assert core.get_keyboard_mapping(conn, code, 1)[0][0] == 0x1000416
        assert xkb.get_state(conn).locked_modifiers == 16
        for other in line["codes"]:
            assert int(other) == code or not any(core.get_keyboard_mapping(conn, int(other), 1)[0])


def test_what_a_living_process_borrows_is_left_alone(display: XServer) -> None:
    with Connection.open(display.display) as conn, Connection.open(display.display) as other:
        keymap = Keymap.read(conn)
        with KeyboardLoan(conn, keymap) as loan:
            (place,) = loan.lend([0xE9])
            assert restore_borrowed(other) == []
            assert core.get_keyboard_mapping(other, place.keycode, 1)[0][0] == 0xE9
            with KeyboardLoan(other, keymap) as second:
                assert second.lend([0xE8])[0].keycode != place.keycode
        assert Keymap.read(conn) == keymap


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"codes": {"a": [1]}}',
        b'{"owner": -1, "codes": 3}\nx',
        b'{"owner": 77, "codes": {"38": [[97, 65], [[[1, 2, 3]], [200, 0, 0, 0], 1]]}}',  # a key type that is not there
        b'{"owner": 77, "codes": {"999": [[97], [[], [0, 0, 0, 0], 0]]}}',
        b'{"owner": 77, "codes": {"38": [[97], [[[1], [1, 2]], [0, 0, 0, 0], 0]]}, "state": [1]}',
    ],
)
def test_a_property_that_is_not_ours_does_no_harm(display: XServer, value: bytes) -> None:
    with Connection.open(display.display) as conn:
        before = Keymap.read(conn)
        core.change_property(conn, conn.root, conn.atom(PROPERTY), core.ATOM_STRING, 8, value)
        assert restore_borrowed(conn) == []
        assert Keymap.read(conn) == before
