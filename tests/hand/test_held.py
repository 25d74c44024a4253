"""The ledger of held input: nothing stays pressed, whatever happens to whoever pressed it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.probes import RawWindow, keycode, pressed

import deskhand
from deskhand.hand import held
from deskhand.hand.hand import Hand
from deskhand.hand.held import KEEP_SECONDS, Ledger
from deskhand.hand.x11 import Connection, core, xtest
from deskhand.testing import XServer

SHIFT, LETTER_A = 0xFFE1, 0x61
SOURCES = str(Path(deskhand.__file__).parents[1])


@pytest.fixture
def screen(display: XServer) -> Iterator[XServer]:
    """An X server with a window for keys to go to."""
    with RawWindow(display):
        yield display


def act(hand: Hand, *actions: dict[str, Any]) -> dict[str, Any]:
    answer, _ = hand.act({"actions": list(actions), "settle": {"mode": "none"}})
    return answer


def down(keys: str) -> dict[str, Any]:
    return {"action": "key_down", "keys": keys}


@contextmanager
def process(server: XServer, code: str) -> Iterator[subprocess.Popen[str]]:
    """Another process, after it has said ``ready``; ``hand()`` makes a hand in it, ``forever()`` waits."""
    head = (
        f"import sys, signal; sys.path.insert(0, {SOURCES!r})\n"
        "from deskhand.hand.hand import Hand\n"
        "from deskhand.hand.held import KEY, BUTTON\n"
        "from deskhand.hand.x11 import core, xtest\n"
        f"def hand(session=None): return Hand({server.display!r}, session=session)\n"
        "def forever():\n    print('ready', flush=True)\n    signal.pause()\n"
        "def act(h, *actions): return h.act({'actions': list(actions), 'settle': {'mode': 'none'}})[0]\n"
    )
    running = subprocess.Popen([sys.executable, "-c", head + code], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    try:
        assert running.stdout.readline() == "ready\n"
        yield running
    finally:
        running.kill()
        running.communicate()


def kill(running: subprocess.Popen[str], server: XServer) -> None:
    """``kill -9``, and the X server has seen the end of its connection."""
    running.kill()
    running.wait()
    with Connection.open(server.display) as conn:
        conn.sync()


def entries(server: XServer) -> list[dict[str, Any]]:
    with Connection.open(server.display) as conn:
        value = core.get_property(conn, conn.root, conn.atom("_DESKHAND_HELD")).value
    return [json.loads(line) for line in value.decode().splitlines()]


def write(server: XServer, *lines: str) -> None:
    with Connection.open(server.display) as conn:
        value = "\n".join(lines).encode()
        core.change_property(conn, conn.root, conn.atom("_DESKHAND_HELD"), conn.atom("UTF8_STRING"), 8, value)
        conn.sync()


class TestKilled:
    def test_in_the_middle_of_a_chord(self, screen: XServer) -> None:
        """Between the press and the release, as it is written before the press."""
        a = keycode(screen, LETTER_A)
        code = f"h = hand(); d = h.display; d.ledger.hold_all([(KEY, 37), (KEY, {a})])\n"
        code += f"xtest.fake_input(d.conn, 2, 37); xtest.fake_input(d.conn, 2, {a}); d.conn.sync(); forever()"
        with process(screen, code) as running:
            assert set(pressed(screen)) == {"key 37", f"key {a}"}
            kill(running, screen)
            assert set(pressed(screen)) == {"key 37", f"key {a}"}, "or there would be nothing to show"
            with Hand(screen.display) as hand:
                answer = act(hand, {"action": "cursor_position"})
                assert set(answer["released"]) == {"key 37", f"key {a}"}
                assert pressed(screen) == []
                assert "released" not in act(hand, {"action": "cursor_position"}), "it is told once"

    @pytest.mark.parametrize("session", [None, "named"])
    def test_with_keys_and_a_button_held(self, screen: XServer, session: str | None) -> None:
        code = (
            f"h = hand({session!r})\n"
            "act(h, {'action': 'key_down', 'keys': 'ctrl+shift'}, {'action': 'mouse_down', 'x': 5, 'y': 5})\nforever()"
        )
        with process(screen, code) as running:
            assert len(pressed(screen)) == 3
            kill(running, screen)
            assert len(pressed(screen)) == 3
            Hand(screen.display).display.close()
        assert pressed(screen) == []
        assert entries(screen) == []

    @pytest.mark.parametrize("session", [None, "mine"])
    def test_beside_a_hand_that_lives_on(self, screen: XServer, session: str | None) -> None:
        """As computerd and the MCP server do: their next batch finds the display as they left it."""
        a = keycode(screen, LETTER_A)
        code = (
            "h = hand()\n"
            "act(h, {'action': 'key_down', 'keys': 'ctrl+shift'}, {'action': 'mouse_down', 'x': 5, 'y': 5})\nforever()"
        )
        with Hand(screen.display, session=session) as hand:
            assert act(hand, {"action": "key_down", "keys": "a"})["ok"]
            with process(screen, code) as running:
                assert "released" not in act(hand, {"action": "cursor_position"}), "it lives"
                kill(running, screen)
                assert len(pressed(screen)) == 4
                answer = act(hand, {"action": "cursor_position"})
                assert len(answer["released"]) == 3
                assert pressed(screen) == [f"key {a}"], "our own stays down"
                assert "released" not in act(hand, {"action": "cursor_position"}), "it is told once"
        assert len(entries(screen)) == (0 if session is None else 1)

    def test_the_keyboard_it_had_borrowed_from_is_put_right_beside_one_that_lives_on(self, screen: XServer) -> None:
        def keyboard_map() -> list[tuple[int, ...]]:
            with Connection.open(screen.display) as conn:
                return core.get_keyboard_mapping(conn, 8, 248)

        before = keyboard_map()
        code = (
            "h = hand()\n"
            "from deskhand.hand.borrowing import KeyboardLoan\n"
            "from deskhand.hand.keymap import Keymap\n"
            "KeyboardLoan(h.display.conn, Keymap.read(h.display.conn)).lend([0x1006f22])\nforever()"
        )
        with Hand(screen.display) as hand, process(screen, code) as running:
            act(hand, {"action": "cursor_position"})
            assert keyboard_map() != before, "it lives"
            kill(running, screen)
            assert act(hand, {"action": "cursor_position"})["restored"]
            assert keyboard_map() == before

    def test_in_the_middle_of_a_drag(self, screen: XServer) -> None:
        """A real one, killed while the server is still moving the pointer."""
        code = (
            "import os, threading\n"
            "h = hand(); h.display\n"
            "path = [[n, n] for n in range(700)]\n"
            "threading.Thread(target=lambda: act(h, {'action': 'drag', 'path': path})).start()\n"
            "forever()"
        )
        with RawWindow(screen) as window, process(screen, code) as running:
            window.conn.wait(lambda: any(event.state & 0x100 for event in window.received), 10)
            kill(running, screen)
        Hand(screen.display).display.close()
        assert pressed(screen) == []

    def test_a_written_press_that_never_came_is_no_release(self, screen: XServer) -> None:
        code = "h = hand(); h.display.ledger.hold(KEY, 38); forever()"
        with process(screen, code) as running:
            kill(running, screen)
            with RawWindow(screen) as window:
                with Hand(screen.display) as hand:
                    assert hand.display.ledger.released_of_others == []
                assert window.all("up") == []
        assert entries(screen) == []


class TestTheLiving:
    def test_another_ones_hold_is_not_taken(self, screen: XServer) -> None:
        shift = f"key {keycode(screen, SHIFT)}"
        code = "h = hand('other'); act(h, {'action': 'key_down', 'keys': 'shift'}); forever()"
        with process(screen, code) as running:
            for session in (None, "mine", "other"):
                with Hand(screen.display, session=session) as hand:
                    assert act(hand, {"action": "move", "x": 5, "y": 5}, {"action": "click"})["ok"]
                    assert act(hand, down("ctrl"))["ok"]
                    failed = act(hand, {"action": "wait_window", "title": "no such", "timeout": 0})
                    assert not failed["ok"]
                    hand.close(keep=False)
                assert pressed(screen) == [shift]
            kill(running, screen)
        Hand(screen.display).display.close()
        assert pressed(screen) == []

    def test_two_write_at_the_same_time(self, screen: XServer) -> None:
        """Neither loses what the other has written."""
        with Hand(screen.display) as one, Hand(screen.display) as two:
            one_ledger, two_ledger = one.display.ledger, two.display.ledger
            for number in range(20):
                one_ledger.hold("key", 10 + number)
                two_ledger.hold("button", 10 + number)
            assert len(entries(screen)) == 40
            one_ledger.release_all()
            assert {entry["kind"] for entry in entries(screen)} == {"button"}
            two_ledger.drop_all(two_ledger.held)
        assert entries(screen) == []


class TestSessions:
    def test_a_named_session_keeps_a_key_over_processes(self, screen: XServer) -> None:
        shift = f"key {keycode(screen, SHIFT)}"
        with Hand(screen.display, session="s") as hand:
            act(hand, down("shift"), {"action": "mouse_down", "x": 5, "y": 5})
        assert pressed(screen) == [shift, "button 1"]
        with Hand(screen.display, session="another") as hand:
            act(hand, {"action": "move", "x": 6, "y": 6})
        with Hand(screen.display) as hand:
            assert "released" not in act(hand, {"action": "move", "x": 7, "y": 7})
        assert pressed(screen) == [shift, "button 1"]
        with Hand(screen.display, session="s") as hand:
            act(hand, {"action": "mouse_up"})
            assert pressed(screen) == [shift]
            act(hand, {"action": "key_up", "keys": "shift"})
        assert pressed(screen) == []
        assert entries(screen) == []

    def test_it_is_kept_for_a_minute(self, screen: XServer, monkeypatch: pytest.MonkeyPatch) -> None:
        real = held._now
        with Hand(screen.display, session="s") as hand:
            act(hand, down("shift"))
        (entry,) = entries(screen)
        assert 0 < entry["until"] - real() <= KEEP_SECONDS
        monkeypatch.setattr(held, "_now", lambda: real() + KEEP_SECONDS - 5)
        Hand(screen.display).display.close()
        assert len(pressed(screen)) == 1
        monkeypatch.setattr(held, "_now", lambda: real() + KEEP_SECONDS + 1)
        Hand(screen.display).display.close()
        assert pressed(screen) == []

    def test_after_that_its_own_session_does_not_get_it_back_either(
        self, screen: XServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = held._now
        with Hand(screen.display, session="s") as hand:
            act(hand, down("shift"))
        monkeypatch.setattr(held, "_now", lambda: real() + KEEP_SECONDS + 1)
        with Hand(screen.display, session="s") as hand:
            assert hand.display.ledger.held == []
            assert pressed(screen) == []

    def test_without_a_name_everything_is_released(self, screen: XServer) -> None:
        with Hand(screen.display) as hand:
            act(hand, down("ctrl+shift"), {"action": "mouse_down", "x": 5, "y": 5})
            assert len(pressed(screen)) == 3
            assert act(hand, {"action": "move", "x": 9, "y": 9})["ok"]
            assert len(pressed(screen)) == 3, "it stays for the session's next batch"
        assert pressed(screen) == []
        assert entries(screen) == []

    def test_a_session_that_is_over_keeps_nothing(self, screen: XServer) -> None:
        hand = Hand(screen.display, session="s")
        act(hand, down("shift"))
        hand.close(keep=False)
        assert pressed(screen) == []


@pytest.mark.parametrize(
    "failing",
    [
        {"action": "wait_window", "title": "no such window", "timeout": 0},
        {"action": "focus", "window": 0x7FFFFFFF},
        {"action": "close", "window": 0x7FFFFFFF},
    ],
)
def test_the_first_failure_releases_everything(screen: XServer, failing: dict[str, Any]) -> None:
    with Hand(screen.display, session="s") as hand:
        answer = act(hand, down("ctrl"), {"action": "mouse_down", "x": 5, "y": 5}, failing, down("a"))
        assert [result["status"] for result in answer["results"]] == ["ok", "ok", "failed", "skipped"]
        assert sorted(answer["released"]) == ["button 1", f"key {keycode(screen, 0xFFE3)}"]
        assert pressed(screen) == []
        assert entries(screen) == []


def test_a_refused_batch_releases_nothing_as_nothing_was_done(screen: XServer) -> None:
    with Hand(screen.display) as hand:
        act(hand, down("ctrl"))
        with pytest.raises(Exception, match="nosuch"):
            act(hand, {"action": "key", "keys": "nosuch"})
        assert len(pressed(screen)) == 1
    assert pressed(screen) == []


def test_what_is_covered_is_released_by_an_error_too(screen: XServer) -> None:
    a = keycode(screen, LETTER_A)
    with Hand(screen.display) as hand:
        ledger, conn = hand.display.ledger, hand.display.conn

        def fail_inside() -> None:
            with ledger.covering([("key", a)]):
                xtest.fake_input(conn, xtest.KEY_PRESS, a)
                conn.sync()
                assert entries(screen)[0]["code"] == a
                raise RuntimeError("in the middle")

        with pytest.raises(RuntimeError, match="in the middle"):
            fail_inside()
        assert (pressed(screen), ledger.held) == ([], [])


OWNERLESS = {"owner": 1, "kind": "key", "code": 38, "until": None}
HOSTILE = [
    "",
    "no json",
    "[]",
    "5",
    "null",
    '"key"',
    "[" * 100_000,
    "\x00\x01",
    json.dumps({}),
    json.dumps({"kind": "key"}),
    json.dumps({"kind": ["key"], "code": 38, "owner": 1}),
    json.dumps({**OWNERLESS, "code": 0}),
    json.dumps({**OWNERLESS, "code": 256}),
    json.dumps({**OWNERLESS, "code": -1}),
    json.dumps({**OWNERLESS, "code": "38"}),
    json.dumps({**OWNERLESS, "code": 38.5}),
    json.dumps({**OWNERLESS, "code": True}),
    json.dumps({**OWNERLESS, "code": [38]}),
    json.dumps({**OWNERLESS, "code": 1e400}),
    json.dumps({**OWNERLESS, "code": 10**400}),
    json.dumps({**OWNERLESS, "owner": None}),
    json.dumps({**OWNERLESS, "owner": -1}),
    json.dumps({**OWNERLESS, "owner": 1 << 32}),
    json.dumps({**OWNERLESS, "owner": "x"}),
    json.dumps({**OWNERLESS, "owner": {}}),
    json.dumps({**OWNERLESS, "until": "soon"}),
    json.dumps({**OWNERLESS, "until": []}),
    json.dumps({**OWNERLESS, "until": float("nan")}),
    json.dumps({**OWNERLESS, "until": 1e18}),
    json.dumps({**OWNERLESS, "until": -1}),
    json.dumps({**OWNERLESS, "session": {"a": 1}, "nonce": []}),
]


@pytest.mark.parametrize("session", [None, "s"])
def test_anything_may_stand_on_the_root_window(screen: XServer, session: str | None) -> None:
    for line in HOSTILE:
        write(screen, line)
        with Hand(screen.display, session=session) as hand:
            assert act(hand, down("shift"), {"action": "key_up", "keys": "shift"})["ok"], line
        write(screen, line, line)
        Hand(screen.display, session=session).display.close()
        assert entries_or_nothing(screen) == [], line
        assert pressed(screen) == [], line


def entries_or_nothing(server: XServer) -> list[dict[str, Any]]:
    try:
        return entries(server)
    except ValueError:
        return []  # nobody had anything to write, so what was there still is


def test_a_line_for_ever_does_not_keep_a_key_for_ever(screen: XServer) -> None:
    a = keycode(screen, LETTER_A)
    with Connection.open(screen.display) as conn:
        xtest.fake_input(conn, xtest.KEY_PRESS, a)
        conn.sync()
    write(screen, json.dumps({**OWNERLESS, "code": a, "until": 1e18, "session": "s"}))
    Hand(screen.display, session="s").display.close()
    assert pressed(screen) == []


def test_a_property_of_another_type_and_format(screen: XServer) -> None:
    with Connection.open(screen.display) as conn:
        core.change_property(conn, conn.root, conn.atom("_DESKHAND_HELD"), core.ATOM_CARDINAL, 32, b"\xff" * 64)
        conn.sync()
    with Hand(screen.display) as hand:
        assert act(hand, down("shift"))["ok"]
    assert pressed(screen) == []


def test_an_owner_that_only_looks_alive_is_dead(screen: XServer) -> None:
    """Another client got the same window id after the owner's end: it lacks the owner's mark."""
    a = keycode(screen, LETTER_A)
    with RawWindow(screen) as window:
        with Connection.open(screen.display) as conn:
            xtest.fake_input(conn, xtest.KEY_PRESS, a)
            conn.sync()
        write(screen, json.dumps({**OWNERLESS, "owner": window.id, "code": a, "nonce": "1.2"}))
        with Hand(screen.display) as hand:
            assert hand.display.ledger.released_of_others == [("key", a)]
    assert pressed(screen) == []


def test_the_process_that_ends_by_a_signal_while_it_holds(screen: XServer) -> None:
    code = "h = hand(); act(h, {'action': 'key_down', 'keys': 'shift'}); forever()"
    with process(screen, code) as running:
        os.kill(running.pid, signal.SIGTERM)
        running.wait(10)
    Hand(screen.display).display.close()
    assert pressed(screen) == []


def test_a_ledger_does_not_leave_windows_behind(screen: XServer) -> None:
    with Connection.open(screen.display) as conn:
        before = len(core.query_tree(conn, conn.root)[2])
        for _ in range(5):
            with Hand(screen.display) as hand:
                act(hand, down("shift"))
        conn.sync()
        assert len(core.query_tree(conn, conn.root)[2]) == before


def test_the_order_of_release_is_the_other_way_round(screen: XServer) -> None:
    with RawWindow(screen) as window, Connection.open(screen.display) as conn:
        ledger = Ledger(conn)
        for code in (37, 38, 39):
            ledger.hold("key", code)
            xtest.fake_input(conn, xtest.KEY_PRESS, code)
        conn.sync()
        assert ledger.release_all() == [("key", 39), ("key", 38), ("key", 37)]
        assert [event.detail for event in window.all("up")] == [39, 38, 37]


@pytest.mark.parametrize(("kind", "code"), [("key", 3), ("button", 200)])
@pytest.mark.parametrize("until", [None, 30.0])
def test_what_no_device_has_keeps_nobody_from_the_display(
    screen: XServer, kind: str, code: int, until: float | None
) -> None:
    """Anybody may write that property, and the server refuses such a release."""
    shift = keycode(screen, SHIFT)
    with Connection.open(screen.display) as conn:
        xtest.fake_input(conn, xtest.KEY_PRESS, shift)
        conn.sync()
    left = {**OWNERLESS, "session": "s", "code": shift}
    kept = until if until is None else time.clock_gettime(time.CLOCK_BOOTTIME) + until
    write(screen, json.dumps(left) + "\n" + json.dumps({**left, "kind": kind, "code": code, "until": kept}))
    with Hand(screen.display, session="s") as hand:
        assert hand.display.ledger.released_of_others == [("key", shift)]
        assert hand.display.ledger.held == []
        assert act(hand, down("a"))["ok"]
        assert hand.release() == [f"key {keycode(screen, LETTER_A)}"]
    assert pressed(screen) == []
