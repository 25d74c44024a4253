"""The picture an answer carries: its limits, its facts, its formats."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator

import pytest
from tests.hand.test_png import decode
from tests.xservers import put_pixels

from deskhand.hand import accelerators
from deskhand.hand.errors import Unsupported
from deskhand.hand.picture import MAX_BYTES, MAX_EDGE, check_format, make_picture
from deskhand.hand.pixels import Layout
from deskhand.hand.screen import STRIP, Capture, Screen
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer

BGRX = Layout(4, 32, False, (0xFF0000, 0xFF00, 0xFF))


def capture_of(width: int, height: int, data: bytes) -> Capture:
    return Capture(data, (0, 0, width, height), (width, height), BGRX, 12.5, (3, 4))


@pytest.fixture(params=["with what is installed", "alone"])
def accelerated(request: pytest.FixtureRequest) -> Iterator[bool]:
    if request.param == "alone":
        accelerators.without()
    yield request.param != "alone"
    accelerators.again()


def test_facts(display: XServer) -> None:
    with Connection.open(display.display) as connection:
        put_pixels(connection, connection.root, 0, 0, 1280, 800, 0)
        put_pixels(connection, connection.root, 20, 30, 1, 1, 0xFFFFFF)
        screen = Screen(connection)
        picture = make_picture(screen.capture((10, 20, 110, 70)), 7)
        facts = picture.facts()
        assert {
            name: facts[name] for name in ("format", "width", "height", "scale", "sequence", "blank", "region")
        } == {
            **{"format": "png", "width": 100, "height": 50, "scale": 1.0, "sequence": 7, "blank": False},
            "region": [10, 20, 110, 70],
        }
        assert facts["screen"] == [1280, 800]
        assert facts["cursor"] == [640, 400]
        assert "content" not in facts
        assert decode(picture.content)[:2] == (100, 50)


def test_hash_and_blank(display: XServer) -> None:
    with Connection.open(display.display) as connection:
        screen = Screen(connection)
        put_pixels(connection, connection.root, 0, 0, 1280, 800, 0x00102030)
        one = make_picture(screen.capture(), 1)
        put_pixels(connection, connection.root, 0, 0, 1280, 800, 0x55102030)  # the pad byte is nothing one sees
        two = make_picture(screen.capture(), 2, max_edge=320)
        assert one.hash == two.hash
        assert one.blank is two.blank is True
        put_pixels(connection, connection.root, 1279, 799, 1, 1, 0x102031)
        three = make_picture(screen.capture(), 3)
        assert three.hash != one.hash
        assert three.blank is False


def test_strips_of_one_colour_each_are_not_blank(accelerated: bool) -> None:
    halves = b"\1\2\3\0" * (50 * STRIP) + b"\4\2\3\0" * (50 * STRIP)
    picture = make_picture(capture_of(50, 2 * STRIP, halves), 1)
    assert picture.blank is False
    assert decode(picture.content)[2] == b"\3\2\1" * (50 * STRIP) + b"\3\2\4" * (50 * STRIP)
    assert make_picture(capture_of(50, 2 * STRIP, halves[: len(halves) // 2] * 2), 1).blank is True


@pytest.mark.parametrize("height", [1, STRIP - 1, STRIP, STRIP + 1, 3 * STRIP])
@pytest.mark.parametrize("layout", [BGRX, Layout(2, 32, False, (0xF800, 0x7E0, 0x1F))])
def test_strips_are_the_whole(accelerated: bool, height: int, layout: Layout) -> None:
    taken = capture_of(33, height, os.urandom(layout.stride(33) * height))._replace(layout=layout)
    assert b"".join(taken.strips()) == taken.rgb()
    picture = make_picture(taken, 1)
    assert decode(picture.content) == (33, height, taken.rgb())
    assert picture.hash == hashlib.sha1(taken.rgb()).hexdigest()


def test_a_drawn_cursor_is_in_the_strips(display: XServer) -> None:
    with Connection.open(display.display) as connection:
        screen = Screen(connection)
        with_it, without = make_picture(screen.capture(cursor=True), 1), make_picture(screen.capture(), 2)
        if screen.capture(cursor=True).drawn is None:
            pytest.skip("this server shows no cursor")
        assert decode(with_it.content)[2] == screen.capture(cursor=True).rgb()
        assert with_it.hash != without.hash or with_it.blank


def test_the_same_pixels_with_and_without_accelerators() -> None:
    taken = capture_of(301, 203, os.urandom(4 * 301 * 203))
    fast = make_picture(taken, 1)
    accelerators.without()
    try:
        alone = make_picture(taken, 1)
    finally:
        accelerators.again()
    assert decode(fast.content) == decode(alone.content) == (301, 203, taken.rgb())
    assert fast.hash == alone.hash


@pytest.mark.parametrize("edge", [1, 100, 1280, 4000])
def test_max_edge(accelerated: bool, edge: int) -> None:
    picture = make_picture(capture_of(1280, 800, os.urandom(4 * 1280) * 800), 1, max_edge=edge)
    assert max(picture.width, picture.height) == min(edge, 1280)
    assert decode(picture.content)[:2] == (picture.width, picture.height)
    assert picture.scale == pytest.approx(picture.width / 1280, abs=1e-6)


def test_noise_on_a_huge_screen_keeps_both_limits(accelerated: bool) -> None:
    """S8: a picture that nothing compresses."""
    width, height = 4880, 2560
    taken = capture_of(width, height, os.urandom(4 * width * height))
    picture = make_picture(taken, 1)
    assert len(picture.content) <= MAX_BYTES
    assert max(picture.width, picture.height) <= MAX_EDGE
    assert picture.scale == pytest.approx(picture.width / width, abs=1e-6)
    assert abs(picture.height - height * picture.scale) <= 1
    assert decode(picture.content)[:2] == (picture.width, picture.height)
    part = make_picture(taken._replace(data=taken.data[: 4 * 400 * 300], region=(0, 0, 400, 300)), 2)
    assert (part.width, part.height, part.scale) == (400, 300, 1.0)  # the full picture stays to be had by regions


@pytest.mark.parametrize("size", [(13, 4001), (4001, 13)])
def test_the_scale_of_a_narrow_picture_leads_back(size: tuple[int, int]) -> None:
    width, height = size
    picture = make_picture(capture_of(width, height, bytes(4 * width * height)), 1)
    assert abs(picture.width / picture.scale - width) <= 1
    assert abs(picture.height / picture.scale - height) <= 1


@pytest.mark.parametrize("limit", [20_000, 100_000, 1_000_000])
def test_max_bytes(accelerated: bool, limit: int) -> None:
    picture = make_picture(capture_of(800, 600, os.urandom(4 * 800 * 600)), 1, max_bytes=limit)
    assert len(picture.content) <= limit
    assert len(picture.content) > limit // 3  # no smaller than it needs to be
    assert picture.scale < 1


def test_without_limits_it_is_whole() -> None:
    taken = capture_of(3000, 40, os.urandom(4 * 3000 * 40))
    picture = make_picture(taken, 1, "png", None, None)
    assert decode(picture.content) == (3000, 40, taken.rgb())


@pytest.mark.parametrize("format", ["jpeg", "webp"])
def test_other_formats(format: str) -> None:
    image = pytest.importorskip("PIL.Image")
    data = b"".join(bytes((x * 255 // 299, 100, 200 - x * 200 // 299, 0)) for x in range(300)) * 200
    taken = capture_of(300, 200, data)
    picture = make_picture(taken, 1, format, max_edge=150)
    read = image.open(io.BytesIO(picture.content))
    assert (read.format.lower(), read.size, picture.format) == (format, (150, 100), format)
    read = image.open(io.BytesIO(make_picture(taken, 1, format).content)).convert("RGB")
    for x, y in ((10, 10), (150, 100), (290, 190)):
        start = 3 * (y * 300 + x)
        assert all(abs(a - b) < 12 for a, b in zip(read.getpixel((x, y)), taken.rgb()[start : start + 3]))  # noqa: B905
    noise = make_picture(capture_of(800, 600, os.urandom(4 * 800 * 600)), 1, format, max_bytes=50_000)
    assert len(noise.content) <= 50_000


def test_other_formats_say_what_they_need() -> None:
    accelerators.without()
    try:
        check_format("png")
        for format in ("jpeg", "webp"):
            with pytest.raises(Unsupported, match=f"{format} pictures need Pillow where the hand runs: ask for png"):
                check_format(format)
            with pytest.raises(Unsupported):
                make_picture(capture_of(2, 2, bytes(16)), 1, format)
    finally:
        accelerators.again()


def test_one_pixel() -> None:
    picture = make_picture(capture_of(1, 1, b"\1\2\3\0"), 1)
    assert decode(picture.content) == (1, 1, b"\3\2\1")
    assert picture.blank
