"""Waiting for the screen, with real windows: how it ends and what it has seen, never how long it took."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.settle_windows import settle_window
from tests.xservers import put_pixels, resize

from deskhand.hand.ping import Pings
from deskhand.hand.screen import Screen
from deskhand.hand.screen_watch import ScreenWatch
from deskhand.hand.settle import Input, Verdict, wait_fixed, wait_until_settled
from deskhand.hand.x11 import Connection, core, xtest
from deskhand.testing import XServer

KEY_A = 38
LONG = 20.0  # far more than any of these needs: an outcome of "timeout" is a fault


class Desk:
    """One connection, as a batch uses it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.screen = Screen(connection)
        self.pings = Pings(connection)

    @contextmanager
    def watching(self) -> Iterator[ScreenWatch]:
        with ScreenWatch(self.connection, self.screen) as watch:
            yield watch

    def after(self, act: Callable[[], None], window: int = 0, timeout: float = LONG, **more: bool) -> Verdict:
        """Do something, and wait."""
        with self.watching() as watch:
            act()
            last = Input(time.monotonic(), [window], more.pop("hover", False), more.pop("scroll", False))
            strict = more.pop("strict", False)
            return wait_until_settled(self.connection, self.pings, watch, last, timeout, strict)

    def press_a(self) -> None:
        xtest.fake_input(self.connection, xtest.KEY_PRESS, KEY_A)
        xtest.fake_input(self.connection, xtest.KEY_RELEASE, KEY_A, delay_ms=8)
        self.connection.sync()

    def colours(self) -> set[bytes]:
        rgb = self.screen.capture().rgb()
        return {rgb[at : at + 3] for at in range(0, len(rgb), 3)}


@pytest.fixture
def desk(openbox_display: XServer) -> Iterator[Desk]:
    with Connection.open(openbox_display.display) as connection:
        yield Desk(connection)


@pytest.fixture
def bare(display: XServer) -> Iterator[Desk]:
    with Connection.open(display.display) as connection:
        yield Desk(connection)


def quiet(desk: Desk) -> None:
    """Until what a window shows at first has been drawn."""
    assert desk.after(lambda: None).outcome in ("settled", "animating")


@pytest.mark.parametrize("toolkit", ["tk", "gtk"])
def test_nothing_changes(openbox_display: XServer, desk: Desk, toolkit: str) -> None:
    with settle_window(openbox_display, desk.connection, toolkit, "still") as (window, _):
        quiet(desk)
        verdict = desk.after(desk.press_a, window)
        assert (verdict.outcome, verdict.moving) == ("settled", [])
        assert verdict.settled


def test_an_empty_screen(bare: Desk) -> None:
    for more in ({}, {"hover": True}, {"scroll": True, "strict": True}):
        assert bare.after(lambda: None, **more).outcome == "settled"


def test_a_blinking_caret_settles(openbox_display: XServer, desk: Desk) -> None:
    """S12: it blinks for ever and means nothing."""
    with settle_window(openbox_display, desk.connection, "tk", "caret") as (window, _):
        quiet(desk)
        with desk.watching() as watch:  # it does blink
            assert desk.connection.wait(lambda: watch.look() or any(c.caret for c in watch.changes), 20)
        assert desk.after(lambda: None, window).outcome == "settled"
        assert desk.after(desk.press_a, window).outcome == "settled"


def test_a_small_animation_is_named_and_not_waited_for(openbox_display: XServer, desk: Desk) -> None:
    """S12: a canvas redrawn each 50 ms."""
    with settle_window(openbox_display, desk.connection, "tk", "small") as (window, _):
        verdict = desk.after(desk.press_a, window)
        assert verdict.outcome == "animating"
        assert not verdict.settled
        (moving,) = verdict.moving
        x, y, width, height = moving
        assert width <= 100
        assert height <= 100
        assert 30 <= x < 160
        assert 30 <= y < 200


@pytest.mark.slow
def test_a_large_animation_ends_with_the_timeout(openbox_display: XServer, desk: Desk) -> None:
    with settle_window(openbox_display, desk.connection, "tk", "large") as (window, _):
        verdict = desk.after(desk.press_a, window, timeout=1.5)
        assert verdict.outcome == "timeout"
        assert not verdict.settled
        assert verdict.moving
        assert sum(w * h for _, _, w, h in verdict.moving) > 0.02 * 1280 * 800


def test_several_steps_are_all_waited_for(openbox_display: XServer, desk: Desk) -> None:
    with settle_window(openbox_display, desk.connection, "tk", "steps") as (window, _):
        quiet(desk)
        verdict = desk.after(desk.press_a, window)
        assert verdict.outcome == "settled"
        rgb = desk.screen.capture().rgb()
        assert rgb.count(b"\x00\xff\x00" * 100) >= 3 * 100  # a hundred rows of each of the three squares


def test_a_window_that_paints_late_is_waited_for(openbox_display: XServer, desk: Desk) -> None:
    with settle_window(openbox_display, desk.connection, "tk", "late") as (window, _):
        quiet(desk)
        assert desk.after(desk.press_a, window).outcome == "settled"
        assert b"\xff\x00\x00" in desk.colours()


def test_a_menu_is_waited_for(openbox_display: XServer, desk: Desk) -> None:
    with settle_window(openbox_display, desk.connection, "tk", "menu") as (window, _):
        quiet(desk)
        assert b"\x00\x00\xff" not in desk.colours()
        assert desk.after(desk.press_a, window).outcome == "settled"
        assert b"\x00\x00\xff" in desk.colours()


def test_an_application_that_is_busy_is_waited_for(openbox_display: XServer, desk: Desk) -> None:
    """Nothing changes while it computes: only its answer to the ping tells that it has seen the key."""
    with settle_window(openbox_display, desk.connection, "gtk", "slow") as (window, _):
        quiet(desk)
        before = desk.screen.capture().rgb()
        with desk.watching() as watch:
            desk.press_a()
            last = Input(time.monotonic(), [window])
            assert wait_until_settled(desk.connection, desk.pings, watch, last, LONG).outcome == "settled"
            assert watch.last_change(last.time) is not None
        assert desk.screen.capture().rgb() != before


def test_a_window_that_closes_on_its_key_does_not_cost_the_timeout(openbox_display: XServer, desk: Desk) -> None:
    with settle_window(openbox_display, desk.connection, "gtk", "closing", "closing") as (window, _):
        quiet(desk)
        assert desk.after(desk.press_a, window).outcome == "settled"
        assert desk.pings.target(window) is None
        assert desk.after(lambda: None, window).outcome == "settled"  # and one that was gone before


@pytest.mark.slow
def test_a_window_that_hangs(openbox_display: XServer, desk: Desk) -> None:
    with settle_window(openbox_display, desk.connection, "gtk", "still") as (window, pid):
        quiet(desk)
        os.kill(pid, signal.SIGSTOP)
        try:
            verdict = desk.after(desk.press_a, window, timeout=0.5)
            assert (verdict.outcome, verdict.moving) == ("timeout", [])
            assert desk.after(desk.press_a, window).outcome == "settled"  # it is not asked again
        finally:
            os.kill(pid, signal.SIGCONT)


def test_the_pointer_rests_longer_until_a_popup_maps(bare: Desk, display: XServer) -> None:
    with Connection.open(display.display) as other:
        window = core.create_window(other, 100, 100, 90, 90, background=0xFFFFFF)
        other.sync()

        def popup() -> None:
            core.map_window(other, window)
            put_pixels(other, window, 5, 5, 10, 10, 0xFF)

        assert bare.after(popup, hover=True).outcome == "settled"


def test_the_screen_changes_its_size_meanwhile(bare: Desk, display: XServer) -> None:
    with Connection.open(display.display) as other:

        def smaller() -> None:
            resize(other, 640, 480)
            put_pixels(other, other.root, 0, 0, 640, 480, 0x123456)

        def larger() -> None:
            resize(other, 1280, 800)
            put_pixels(other, other.root, 0, 0, 1280, 800, 0x654321)

        for change in (smaller, larger):
            assert bare.after(change).outcome == "settled"


def test_what_comes_while_it_waits_is_seen(bare: Desk, display: XServer) -> None:
    with Connection.open(display.display) as other, bare.watching() as watch:
        timer = threading.Timer(0.05, put_pixels, (other, other.root, 10, 10, 100, 100, 0xFF))
        timer.start()
        last = Input(time.monotonic(), [])
        verdict = wait_until_settled(bare.connection, bare.pings, watch, last, LONG)
        timer.join()
        assert verdict.outcome == "settled"
        assert watch.last_change(last.time) is not None


@contextmanager
def drawing(display: XServer) -> Iterator[None]:
    """A client that changes the screen all the time."""
    ended = threading.Event()

    def draw() -> None:
        with Connection.open(display.display) as other:
            number = 0
            while not ended.wait(0.02):
                number += 1
                put_pixels(other, other.root, 100, 100, 400, 300, number % 255 * 0x010101)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_fixed(bare: Desk, display: XServer) -> None:
    with bare.watching() as watch:
        assert wait_fixed(bare.connection, watch, 0.1).outcome == "settled"
        assert wait_fixed(bare.connection, watch, 0.0).outcome == "settled"
        with drawing(display):
            verdict = wait_fixed(bare.connection, watch, 0.5)
        assert (verdict.outcome, verdict.moving) == ("timeout", [[100, 100, 400, 300]])


def test_fixed_sees_the_last_of_a_burst(bare: Desk, display: XServer) -> None:
    with Connection.open(display.display) as other, bare.watching() as watch:
        for number in range(20):
            put_pixels(other, other.root, 10 * number, 0, 10, 10, 0xFF)
        wait_fixed(bare.connection, watch, 0.2)
        assert watch.moving(0.0) == [[0, 0, 200, 10]]
        assert not watch.pending


def test_always_changing_ends_with_the_timeout(bare: Desk, display: XServer) -> None:
    with drawing(display):
        verdict = bare.after(lambda: None, timeout=0.5)
        assert (verdict.outcome, verdict.moving) == ("timeout", [[100, 100, 400, 300]])
        assert bare.after(lambda: None, timeout=0.0).outcome == "timeout"


def test_a_lost_display_ends_it() -> None:
    from deskhand.hand.errors import DisplayLost
    from deskhand.testing import xvfb

    with xvfb() as server, Connection.open(server.display) as connection:
        desk = Desk(connection)
        with pytest.raises(DisplayLost):
            desk.after(lambda: os.kill(server.pid, signal.SIGTERM), timeout=30.0)
