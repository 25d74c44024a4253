"""Waiting, through whole batches and with real applications: the picture is the one that is there later, too."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.probes import probe_window
from tests.settle_windows import settle_window
from tests.xservers import put_pixels, until

from deskhand.hand import client_processes
from deskhand.hand.hand import Hand
from deskhand.hand.windows import list_windows
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer

pytestmark = pytest.mark.slow

RED = b"\xff\x00\x00" * 90
#: Far more than any of these needs: an outcome of "timeout" is a fault.
LONG = 20.0
#: Seconds after which the picture must still be the same: the measure of bench/settle.
LATER = 3.0
TERMINALS = {
    "xterm": ["xterm", "-e"],  # answers no ping
    "xfce4-terminal": ["xfce4-terminal", "--disable-server", "--hide-menubar", "-x"],  # does
}


@pytest.fixture
def hand(openbox_display: XServer) -> Iterator[Hand]:
    with Hand(openbox_display.display) as opened:
        yield opened


def act(hand: Hand, *actions: dict[str, Any], timeout: float = LONG) -> dict[str, Any]:
    answer, _picture = hand.act({"actions": list(actions), "settle": {"mode": "quiet", "timeout": timeout}})
    assert answer["ok"], answer
    return answer


def typed(hand: Hand, text: str, timeout: float = LONG) -> str:
    """The outcome of the wait after typing ``text``."""
    return str(act(hand, {"action": "type", "text": text}, timeout=timeout)["settle"])


def shown(hand: Hand) -> bytes:
    return hand.display.screen.capture().rgb()


def stays(hand: Hand) -> bool:
    """Whether what is shown is what is shown later. (Later is a time: nothing tells that nothing will come.)"""
    now = shown(hand)
    time.sleep(LATER)
    return shown(hand) == now


@contextmanager
def terminal(server: XServer, hand: Hand, kind: str) -> Iterator[int]:
    """A terminal with a shell at its prompt and the focus; gives its pid."""
    if subprocess.run(["which", kind], capture_output=True, check=False).returncode:
        pytest.skip(f"{kind} is not installed")
    env = {**server.env, "PS1": "> ", "NO_AT_BRIDGE": "1"}
    process = subprocess.Popen(
        [*TERMINALS[kind], "bash", "--norc", "--noprofile"], env=env, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        conn = hand.display.conn
        until(lambda: any(one["active"] for one in list_windows(conn)), 30)
        until(lambda: client_processes.is_terminal(process.pid), 30)
        # XFCE's blinks, and a caret of a whole character's size counts as a change.
        assert typed(hand, "printf '\\e[2 q\\e[?12l'; clear\n") == "settled"
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.parametrize("kind", TERMINALS)
def test_a_terminals_command_is_waited_for(openbox_display: XServer, hand: Hand, kind: str) -> None:
    """Nothing changes for 0.7 s; only the processes tell that more is to come."""
    with terminal(openbox_display, hand, kind):
        for command in ("sleep 0.7; echo done\n", "for i in 1 2 3; do echo $i; sleep 0.4; done\n", "ls /\n"):
            assert typed(hand, command) == "settled"
            assert stays(hand), command


@pytest.mark.parametrize("kind", TERMINALS)
@pytest.mark.parametrize(("command", "leave"), [("less /etc/services\n", "q"), ("cat\n", "x\n")])
def test_what_waits_for_us_is_not_waited_for(
    openbox_display: XServer, hand: Hand, kind: str, command: str, leave: str
) -> None:
    with terminal(openbox_display, hand, kind) as pid:
        before = shown(hand)
        assert typed(hand, command) == "settled"
        assert shown(hand) != before
        assert stays(hand)
        assert client_processes._children(client_processes._children(pid)[-1])  # it is still there
        assert typed(hand, leave) == "settled"


def test_a_command_that_never_ends_ends_with_the_timeout(openbox_display: XServer, hand: Hand) -> None:
    with terminal(openbox_display, hand, "xterm"):
        assert typed(hand, "sleep 300\n", timeout=1.0) == "timeout"
        assert typed(hand, "words") == "settled"  # it ran before these were typed
        assert act(hand, {"action": "key", "keys": "ctrl+c"})["settle"] == "settled"


def test_a_throbber_promises_more(openbox_display: XServer, hand: Hand) -> None:
    with settle_window(openbox_display, hand.display.conn, "tk", "load"):
        act(hand, {"action": "move", "x": 1270, "y": 790})
        assert typed(hand, "a") == "settled"
        assert RED in shown(hand)


@pytest.mark.parametrize("mode", ["spin", "clock"])
def test_what_moves_by_itself_is_learnt(openbox_display: XServer, hand: Hand, mode: str) -> None:
    """A throbber that turns for ever costs one wait, and is named each time; a clock beside costs none."""
    with settle_window(openbox_display, hand.display.conn, "tk", mode):
        first = act(hand, {"action": "move", "x": 1270, "y": 790}, timeout=2.0)
        assert first["settle"] == ("timeout" if mode == "spin" else "settled"), first
        if mode == "spin":
            (place,) = first["moving"]
            assert max(place[2:]) <= 16
        for _ in range(3):
            answer = act(hand, {"action": "type", "text": "a"})
            assert answer["settle"] == ("animating" if mode == "spin" else "settled")
            assert answer["settled"] is (mode != "spin")
            assert answer["moving"] == first["moving"]
            assert RED in shown(hand)


def test_an_animation_is_told_each_time(openbox_display: XServer, hand: Hand) -> None:
    with probe_window(openbox_display, "--animate"):
        for x in range(200, 205):
            answer = act(hand, {"action": "move", "x": x, "y": 200})
            assert (answer["settled"], answer["settle"]) in ((False, "animating"), (False, "timeout")), answer
            assert answer["moving"], answer


class Cursor:
    """A client that gives the root window cursors with names (Xcursor's do, by XFixesSetCursorName)."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._font = conn.new_id()
        name = b"cursor"
        conn.send(45, 0, struct.pack("=IH2x", self._font, len(name)) + name)  # OpenFont
        extension = conn.extension("XFIXES")
        assert extension is not None
        self._fixes = extension.major
        conn.call(self._fixes, 0, struct.pack("=II", 5, 0))  # QueryVersion

    def show(self, name: str, glyph: int) -> None:
        conn, cursor = self._conn, self._conn.new_id()
        colours = struct.pack("=6H", 0, 0, 0, 0xFFFF, 0xFFFF, 0xFFFF)
        conn.send(94, 0, struct.pack("=IIIHH", cursor, self._font, self._font, glyph, glyph + 1) + colours)
        conn.send(self._fixes, 23, struct.pack("=IH2x", cursor, len(name)) + name.encode())  # SetCursorName
        conn.send(2, 0, struct.pack("=III", conn.root, 1 << 14, cursor))  # ChangeWindowAttributes, cursor
        conn.sync()


def pointer_at(conn: Connection) -> tuple[int, int]:
    at = core.query_pointer(conn, conn.root)
    return at.root_x, at.root_y


@pytest.mark.parametrize("name", ["watch", "left_ptr_watch", "progress", "wait"])
def test_a_busy_pointer_is_waited_for(display: XServer, name: str) -> None:
    with Hand(display.display) as hand, Connection.open(display.display) as other:
        cursor = Cursor(other)
        cursor.show("left_ptr", 68)

        def work() -> None:
            until(lambda: pointer_at(other) == (300, 200))  # the click has begun
            cursor.show(name, 150)
            ended.wait(0.8)
            put_pixels(other, other.root, 100, 100, 90, 90, 0xFF0000)
            cursor.show("left_ptr", 68)

        ended = threading.Event()
        worker = threading.Thread(target=work)
        worker.start()
        try:
            answer = act(hand, {"action": "click", "x": 300, "y": 200})
        finally:
            ended.set()
            worker.join()
        assert answer["settle"] == "settled"
        assert RED in shown(hand)


def test_a_pointer_that_stays_busy_ends_with_the_timeout(display: XServer) -> None:
    with Hand(display.display) as hand, Connection.open(display.display) as other:
        cursor = Cursor(other)

        def work() -> None:
            until(lambda: pointer_at(other) == (300, 200))
            cursor.show("watch", 150)

        worker = threading.Thread(target=work)
        worker.start()
        answer = act(hand, {"action": "click", "x": 300, "y": 200}, timeout=2.0)
        worker.join()
        assert answer["settle"] == "timeout"
        # Busy before: somebody else's, and no news.
        assert act(hand, {"action": "click", "x": 600, "y": 400})["settle"] == "settled"


def test_a_program_that_a_click_starts_is_waited_for(openbox_display: XServer) -> None:
    """As an icon or a menu's entry does: nothing on the screen tells that a window will come."""
    with Hand(openbox_display.display) as hand, Connection.open(openbox_display.display) as other:
        processes = []

        def work() -> None:
            until(lambda: pointer_at(other) == (300, 200))
            tk = "import time; time.sleep(0.4); import tkinter; w = tkinter.Tk(); "
            tk += "tkinter.Frame(w, bg='#ff0000', width=300, height=200).pack(); w.mainloop()"
            command = ["sh", "-c", '"$@" & wait', "sh", "/usr/bin/python3", "-c", tk]
            processes.append(subprocess.Popen(command, env=openbox_display.env, start_new_session=True))

        worker = threading.Thread(target=work)
        worker.start()
        try:
            answer = act(hand, {"action": "click", "x": 300, "y": 200})
            assert answer["settle"] == "settled"
            assert RED in shown(hand)
        finally:
            worker.join()
            for process in processes:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def windows_seen(hand: Hand, act_: Any) -> list[int]:
    """What a watch says of the windows that mapped: how many are shown, and unpainted."""
    from deskhand.hand.screen_watch import ScreenWatch

    with ScreenWatch(hand.display.conn, hand.display.screen) as watch:
        act_()
        hand.display.conn.sync()
        watch.look()
        return [len(watch.mapped), len(watch.shown), len(watch.unpainted(60.0))]


def test_windows_that_nobody_can_see_do_not_hold_it_up(display: XServer) -> None:
    with Hand(display.display) as hand, Connection.open(display.display) as other:

        def off_screen() -> None:
            """As GTK does for each menu."""
            core.map_window(other, core.create_window(other, -100, -100, 1, 1))
            core.map_window(other, core.create_window(other, 1280, 0, 50, 50))
            other.sync()

        def gone_again() -> None:
            window = core.create_window(other, 100, 100, 90, 90)
            core.map_window(other, window)
            other.sync()
            hand.display.conn.sync()
            core.unmap_window(other, window)
            other.sync()

        def seen() -> None:
            core.map_window(other, core.create_window(other, 1270, 790, 50, 50))
            other.sync()

        assert windows_seen(hand, off_screen) == [2, 0, 0]
        assert windows_seen(hand, gone_again)[1:] == [0, 0]
        assert windows_seen(hand, seen) == [1, 1, 1]
