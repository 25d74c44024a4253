"""Applications that put very much where the hand looks, or take away what it reads."""

from __future__ import annotations

import os
import struct

import pytest

from deskhand.hand import windows
from deskhand.hand.docks import hiding_docks
from deskhand.hand.screen import Screen
from deskhand.hand.x11 import Connection, core
from deskhand.testing import window_manager, xvfb


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
