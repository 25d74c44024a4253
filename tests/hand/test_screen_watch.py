"""What changes while the screen is watched."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.xservers import put_pixels, resize, xvfb_with

from deskhand.hand.errors import Unsupported
from deskhand.hand.screen import Screen
from deskhand.hand.screen_watch import ScreenWatch
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer, xvfb


@pytest.fixture
def other(display: XServer) -> Iterator[Connection]:
    """The client that draws."""
    with Connection.open(display.display) as opened:
        put_pixels(opened, opened.root, 0, 0, 1280, 800, 0x101010)
        yield opened


@pytest.fixture
def watch(display: XServer, other: Connection) -> Iterator[ScreenWatch]:
    with Connection.open(display.display) as connection:
        core.select_input(connection, connection.root, core.SUBSTRUCTURE_NOTIFY)
        with ScreenWatch(connection, Screen(connection)) as opened:
            yield opened


def looked(watch: ScreenWatch) -> bool:
    """Look once, after the server has handed over what it has to say."""
    watch._conn.sync()
    return watch.look()


def test_nothing(watch: ScreenWatch, other: Connection) -> None:
    assert not looked(watch)
    assert watch.changes == []
    put_pixels(other, other.root, 0, 0, 1280, 800, 0x101010)  # drawn again, and the same
    assert not looked(watch)
    assert watch.changes == []
    assert watch.area == 1280 * 800


def test_exact_rectangles(watch: ScreenWatch, other: Connection) -> None:
    put_pixels(other, other.root, 100, 200, 31, 17, 0xFF)
    put_pixels(other, other.root, 50, 600, 5, 60, 0xFF00)
    assert looked(watch)
    (change,) = watch.changes
    assert change.rects == [(100, 200, 31, 17), (50, 600, 5, 60)]
    assert not change.caret
    assert watch.last_change(0.0) == change.time
    assert watch.last_change(time.monotonic()) is None
    assert watch.moving(0.0) == [[100, 200, 31, 17], [50, 600, 5, 60]]
    assert watch.moving(time.monotonic()) == []
    for x, y in ((0, 0), (1279, 799)):
        put_pixels(other, other.root, x, y, 1, 1, 0xABCDEF)
        looked(watch)
        assert watch.changes[-1].rects == [(x, y, 1, 1)]


def test_one_bit_of_one_channel_is_a_change(watch: ScreenWatch, other: Connection) -> None:
    for pixel in (0x101011, 0x101111, 0x111111):
        put_pixels(other, other.root, 640, 400, 6, 1, pixel)
        assert looked(watch)
        assert watch.changes[-1].rects == [(640, 400, 6, 1)]


@pytest.mark.parametrize(("width", "height", "caret"), [(1, 16, True), (2, 20, True), (4, 16, True), (1, 40, True)])
def test_a_caret_is_one(watch: ScreenWatch, other: Connection, width: int, height: int, caret: bool) -> None:
    for pixel in (0xFFFFFF, 0x101010, 0xFFFFFF):
        put_pixels(other, other.root, 300, 300, width, height, pixel)
        assert looked(watch) is False
        assert watch.changes[-1].caret is caret
    assert watch.last_change(0.0) is None
    assert watch.moving(0.0) == []


@pytest.mark.parametrize(("width", "height"), [(5, 5), (4, 17), (1, 41), (16, 16), (40, 1)])
def test_other_small_things_are_not(watch: ScreenWatch, other: Connection, width: int, height: int) -> None:
    put_pixels(other, other.root, 300, 300, width, height, 0xFFFFFF)
    assert looked(watch)
    assert not watch.changes[-1].caret


def test_a_caret_and_something_else(watch: ScreenWatch, other: Connection) -> None:
    put_pixels(other, other.root, 300, 300, 1, 16, 0xFFFFFF)
    put_pixels(other, other.root, 600, 500, 50, 50, 0xFFFFFF)
    assert looked(watch)
    assert not watch.changes[-1].caret


def shown(other: Connection) -> int:
    window = core.create_window(other, 400, 300, 200, 150, background=0xFFFFFF)
    core.map_window(other, window)
    other.sync()
    return window


def test_a_mapped_window_with_only_a_background_has_not_painted(watch: ScreenWatch, other: Connection) -> None:
    window = shown(other)
    assert looked(watch)
    assert [mapped.window for mapped in watch.mapped] == [window]
    assert watch.mapped[0].override_redirect
    assert watch.mapped[0].rect == (400, 300, 200, 150)
    assert watch.unpainted(60.0) == watch.mapped
    assert watch.unpainted(0.0) == []
    put_pixels(other, other.root, 10, 10, 50, 50, 0xFF00FF)  # elsewhere
    looked(watch)
    assert watch.unpainted(60.0) == watch.mapped
    put_pixels(other, window, 20, 20, 50, 50, 0xFF0000)
    looked(watch)
    assert watch.unpainted(60.0) == []
    core.unmap_window(other, window)
    core.map_window(other, window)  # again: what it had painted is gone
    other.sync()
    looked(watch)
    assert [mapped.window for mapped in watch.unpainted(60.0)] == [window]


def test_a_window_painted_before_the_first_look_has_painted(watch: ScreenWatch, other: Connection) -> None:
    window = shown(other)
    put_pixels(other, window, 20, 20, 50, 50, 0xFF0000)
    assert looked(watch)
    assert watch.unpainted(60.0) == []


def test_windows_without_pixels_do_not_count(watch: ScreenWatch, other: Connection) -> None:
    window = core.create_window(other, 0, 0, 100, 100, input_only=True)
    core.map_window(other, window)
    short = shown(other)
    core.destroy_window(other, short)
    other.sync()
    looked(watch)
    assert watch.mapped == []


def test_the_size_of_the_screen_changes(watch: ScreenWatch, other: Connection) -> None:
    resize(other, 700, 500)
    put_pixels(other, other.root, 0, 0, 700, 500, 0x202020)
    assert looked(watch)
    assert watch.changes[-1].rects == [(0, 0, 700, 500)]
    assert watch.area == 700 * 500
    resize(other, 1280, 800)
    put_pixels(other, other.root, 0, 0, 1280, 800, 0x202020)
    assert looked(watch)
    put_pixels(other, other.root, 1270, 790, 10, 10, 0x303030)
    assert looked(watch)
    assert watch.changes[-1].rects == [(1270, 790, 10, 10)]


@pytest.mark.parametrize("depth", [16, 30])
def test_other_depths(depth: int) -> None:
    with (
        xvfb_with(screen=f"333x201x{depth}") as name,
        Connection.open(name) as connection,
        Connection.open(name) as two,
        ScreenWatch(connection, Screen(connection)) as watch,
    ):
        put_pixels(two, two.root, 331, 199, 2, 2, 0x3333)
        assert looked(watch) is False  # so small that it may be a caret
        assert watch.changes[-1].rects == [(331, 199, 2, 2)]
        put_pixels(two, two.root, 7, 9, 101, 50, 0x1111)
        assert looked(watch)
        assert watch.changes[-1].rects == [(7, 9, 101, 50)]


def test_without_damage() -> None:
    with xvfb_with("-extension", "DAMAGE") as name, Connection.open(name) as connection, Connection.open(name) as two:
        if connection.extension("DAMAGE") is not None:
            pytest.skip("this server can not do without DAMAGE")
        with ScreenWatch(connection, Screen(connection)) as watch:
            assert watch.pending
            assert not looked(watch)
            put_pixels(two, two.root, 7, 9, 101, 50, 0x1111)
            assert looked(watch)
            assert watch.changes[-1].rects == [(7, 9, 101, 50)]


def test_what_was_there_at_the_start_is_no_change(watch: ScreenWatch) -> None:
    watch._conn.sync()
    watch._conn.read_pending()
    assert not watch.pending


def test_it_ends_with_its_block(display: XServer, other: Connection) -> None:
    with Connection.open(display.display) as connection:
        with ScreenWatch(connection, Screen(connection)) as watch:
            pass
        put_pixels(other, other.root, 0, 0, 100, 100, 0xFF)
        connection.sync()
        assert watch._dirty is None
        watch.close()


def test_one_that_can_not_begin_leaves_nothing_behind() -> None:
    with xvfb(depth=8) as server, Connection.open(server.display) as conn:
        screen = Screen(conn)
        for _ in range(3):
            with pytest.raises(Unsupported):
                ScreenWatch(conn, screen)
        assert conn._subscribers == []
