"""Numbers of pictures: growing over all processes on a display, remembered for each session."""

from __future__ import annotations

import json
import threading

import pytest

from deskhand.hand import frames
from deskhand.hand.frames import Frames
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer


def test_numbers_grow_over_connections_and_sessions(display: XServer) -> None:
    with Connection.open(display.display) as one, Connection.open(display.display) as two:
        a, b, nobody = Frames(one, "a"), Frames(two, "b"), Frames(two, None)
        assert a.newest() is None
        assert [a.next(), b.next(), a.next(), nobody.next()] == [1, 2, 3, 4]
        assert (a.newest(), b.newest(), nobody.newest()) == (3, 2, 4)
        assert Frames(two, "a").newest() == 3
    with Connection.open(display.display) as three:
        assert Frames(three, "a").newest() == 3
        assert Frames(three, "a").next() == 5


def test_many_at_once_get_different_numbers(display: XServer) -> None:
    got: list[int] = []

    def take(session: str) -> None:
        with Connection.open(display.display, timeout=30) as connection:
            mine = Frames(connection, session)
            for _ in range(50):
                number = mine.next()
                got.append(number)

    threads = [threading.Thread(target=take, args=(f"s{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(1, 201))


def test_the_oldest_sessions_are_forgotten(display: XServer) -> None:
    with Connection.open(display.display) as connection:
        first = Frames(connection, "first")
        first.next()
        for number in range(frames.SESSIONS):
            Frames(connection, f"s{number}").next()
        assert first.newest() is None
        assert Frames(connection, "s0").newest() == 2
        assert first.next() == frames.SESSIONS + 2


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"last": 3}',
        b'{"last": "x", "sessions": {}}',
        b'{"last": Infinity, "sessions": {}}',
        b'{"last": NaN, "sessions": {}}',
        b'{"last": -5, "sessions": {}}',
        b'{"last": 1, "sessions": []}',
        b'{"last": 1, "sessions": {"a": null}}',
        b'{"last": 1, "sessions": {"a": Infinity}}',
        b'{"last": ' + b"9" * 5000 + b', "sessions": {}}',
        b'{"last": ' + b"9" * 4000 + b', "sessions": {}}',
        b"[" * 100_000,
    ],
    ids=lambda value: repr(value[:40]),
)
def test_garbage_from_others_is_no_error(display: XServer, value: bytes) -> None:
    with Connection.open(display.display) as connection:
        name = connection.atom("_DESKHAND_FRAMES")
        core.change_property(connection, connection.root, name, core.ATOM_STRING, 8, value)
        mine = Frames(connection, "a")
        assert mine.newest() is None
        assert mine.next() == 1
        assert mine.newest() == 1
        kept = json.loads(core.get_property(connection, connection.root, name).value)
        assert kept == {"last": 1, "sessions": {"a": 1}}


def test_the_server_is_not_left_grabbed(display: XServer) -> None:
    with Connection.open(display.display) as connection, Connection.open(display.display, timeout=5) as other:
        Frames(connection, "a").next()
        other.sync()
