"""What moves by itself is learnt, looked at again, and forgotten when it has stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.xservers import put_pixels

from deskhand.hand.ambient import PLACES, Ambient
from deskhand.hand.screen import Screen
from deskhand.hand.screen_watch import ScreenWatch
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer

PLACE = (100, 100, 60, 40)


@pytest.fixture
def conn(display: XServer) -> Iterator[Connection]:
    with Connection.open(display.display) as opened:
        yield opened


@contextmanager
def moving(display: XServer, place: tuple[int, int, int, int] = PLACE) -> Iterator[None]:
    """A client that changes a place of the screen all the time."""
    ended = threading.Event()

    def draw() -> None:
        with Connection.open(display.display) as other:
            number = 0
            while not ended.wait(0.02):
                number += 1
                put_pixels(other, other.root, *place, number % 255 * 0x010101)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def seen(watch: ScreenWatch, place: tuple[int, int, int, int], times: int = 4) -> bool:
    """Look until that place has changed that often."""
    before = watch.began
    watch.look_until(lambda: watch.changed_in(place, before) >= times, before + 30)
    return watch.changed_in(place, before) >= times


@pytest.fixture
def learnt(display: XServer, conn: Connection) -> Iterator[Ambient]:
    """With something that moves, and is known to."""
    ambient = Ambient()
    with moving(display):
        with ScreenWatch(conn, Screen(conn)) as watch:
            assert seen(watch, PLACE)
            ambient.learn(watch)
        yield ambient


def test_what_still_moves_does_not_count(display: XServer, conn: Connection, learnt: Ambient) -> None:
    with ScreenWatch(conn, Screen(conn)) as watch, Connection.open(display.display) as other:
        learnt.confirm(watch)
        assert seen(watch, PLACE)
        assert watch.last_change(watch.began + 0.2) is None
        put_pixels(other, other.root, 600, 500, 50, 50, 0xFF)  # elsewhere
        conn.sync()
        watch.look_until(lambda: watch.last_change(watch.began) is not None, watch.began + 30)
        assert watch.last_change(watch.began) is not None


def test_what_has_stopped_counts_again(display: XServer, conn: Connection) -> None:
    ambient = Ambient()
    with moving(display), ScreenWatch(conn, Screen(conn)) as watch:
        assert seen(watch, PLACE)
        ambient.learn(watch)
    with ScreenWatch(conn, Screen(conn)) as watch, Connection.open(display.display) as other:
        ambient.confirm(watch)
        put_pixels(other, other.root, *PLACE, 0xABCDEF)
        conn.sync()
        assert watch.look()
        assert not watch.changes[-1].caret


def test_large_places_are_not_learnt(display: XServer, conn: Connection) -> None:
    place = (100, 100, 400, 300)
    ambient = Ambient()
    with moving(display, place):
        for _ in range(2):
            with ScreenWatch(conn, Screen(conn)) as watch:
                ambient.confirm(watch)
                assert seen(watch, place)
                assert watch.last_change(0.0) is not None
                ambient.learn(watch)


def test_what_changed_once_or_twice_is_not_learnt(display: XServer, conn: Connection) -> None:
    ambient = Ambient()
    with ScreenWatch(conn, Screen(conn)) as watch, Connection.open(display.display) as other:
        for pixel in (0xFF, 0xFF00):
            put_pixels(other, other.root, *PLACE, pixel)
            conn.sync()
            watch.look()
        ambient.learn(watch)
        assert ambient._places == []


@pytest.mark.slow
def test_a_place_is_kept_once(display: XServer, conn: Connection, learnt: Ambient) -> None:
    for _ in range(PLACES + 2):
        with ScreenWatch(conn, Screen(conn)) as watch:  # not confirmed: it counts, and is learnt each time
            assert seen(watch, PLACE)
            learnt.learn(watch)
            assert learnt._places == [PLACE]


def test_nothing_known_costs_nothing(conn: Connection) -> None:
    with ScreenWatch(conn, Screen(conn)) as watch:
        Ambient().confirm(watch)
        assert watch.changes == []
