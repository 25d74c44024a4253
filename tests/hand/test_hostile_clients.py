"""Applications that put very much where the hand looks, or take away what it reads."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import deskhand
from deskhand.hand import windows
from deskhand.hand.docks import hiding_docks
from deskhand.hand.errors import ActionFailed
from deskhand.hand.keyboard_turn import KeyboardTurn
from deskhand.hand.ping import ROOT_EVENTS
from deskhand.hand.screen import Screen
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer, window_manager, xvfb


def test_a_list_of_very_many_windows_is_looked_at_in_part() -> None:
    with xvfb() as server, window_manager(server), Connection.open(server.display) as conn:
        listed = struct.pack("=200000I", *range(0x200000, 0x200000 + 200_000))
        for name in ("_NET_CLIENT_LIST", "_NET_CLIENT_LIST_STACKING"):
            core.change_property(conn, conn.root, conn.atom(name), core.ATOM_WINDOW, 32, listed)
        conn.sync()
        assert windows.window_ids(conn) == list(range(0x200000 + 199_000, 0x200000 + 200_000))
        assert windows.list_windows(conn) == []
        assert hiding_docks(conn) == []


def test_a_title_without_end_is_cut() -> None:
    with xvfb() as server, Connection.open(server.display) as conn:
        window = conn.new_id()
        body = struct.pack("=IIhhHHHHII", window, conn.root, 10, 10, 200, 100, 0, 1, 0, 0)
        conn.send(1, 24, body)
        conn.send(8, 0, struct.pack("=I", window))
        for name in ("_NET_WM_NAME", "WM_NAME", "WM_CLASS"):
            core.change_property(conn, window, conn.atom(name), conn.atom("UTF8_STRING"), 8, b"A" * (1 << 20))
        conn.sync()
        (found,) = [one for one in windows.list_windows(conn) if one["id"] == window]
        assert 0 < len(found["title"]) <= 16384


def test_the_server_can_not_cut_off_the_memory_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    create = os.memfd_create

    def kept(name: str, flags: int = os.MFD_CLOEXEC) -> int:
        fd = create(name, flags)
        made.append(os.dup(fd))
        return fd

    monkeypatch.setattr(os, "memfd_create", kept)
    with xvfb() as server, Connection.open(server.display) as conn:
        screen = Screen(conn)
        screen.capture()
        assert made
        for size in (0, 1 << 30):
            with pytest.raises(PermissionError):
                os.ftruncate(made[0], size)
        assert screen.capture().data
        screen.close()
    for fd in made:
        os.close(fd)


#: A client with some windows that changes a property of one of them, or of the root window, all the time: more often
#: than anybody can look, and not more often than a busy machine can read.
FLOOD = """
import struct, sys
from deskhand.hand.x11 import Connection, core
conn = Connection.open(sys.argv[1])
windows = []
for number in range(20):
    windows.append(conn.new_id())
    conn.send(1, 24, struct.pack("=IIhhHHHHII", windows[-1], conn.root, 10 * number, 10, 200, 100, 0, 1, 0, 0))
    conn.send(8, 0, struct.pack("=I", windows[-1]))
target = conn.root if sys.argv[2] == "root" else windows[0]
conn.sync()
print("ready", flush=True)
while True:
    for number in range(2):
        core.change_property(conn, target, core.ATOM_WM_NAME, core.ATOM_STRING, 8, b"%d" % number)
    conn.sync()
"""


@contextmanager
def flood(server: XServer, of: str) -> Iterator[subprocess.Popen[bytes]]:
    """It runs for ten seconds at most: what waits for its end has waited too long."""
    env = {"PYTHONPATH": str(Path(deskhand.__file__).parents[1])}
    words = [sys.executable, "-c", FLOOD, server.display, of]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE) as process:
        timer = threading.Timer(10, process.kill)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            timer.start()
            yield process
        finally:
            timer.cancel()
            process.kill()


def test_a_title_that_changes_all_the_time_holds_up_no_wait(display: XServer) -> None:
    with flood(display, "window") as process, Connection.open(display.display) as conn:
        with pytest.raises(ActionFailed, match=r"within 0\.5 s"):
            windows.wait_window(conn, title="no such", timeout=0.5)
        assert process.poll() is None


def test_events_without_end_hold_up_nobody_who_waits_for_the_keyboard(display: XServer) -> None:
    with Connection.open(display.display) as conn, Connection.open(display.display) as other:
        core.select_input(conn, conn.root, ROOT_EVENTS)
        with KeyboardTurn(other).taken(), flood(display, "root") as process:
            with pytest.raises(ActionFailed, match="has been using the keyboard"), KeyboardTurn(conn).taken(0.5):
                pass
            assert process.poll() is None
