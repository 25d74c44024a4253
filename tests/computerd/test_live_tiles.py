"""Pictures in tiles: put together again they are the screen, and few rectangles hold exactly what differs."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.computerd.live.tiles import TILE, frame_of, rectangles, touched
from deskhand.hand.pixels import Layout
from deskhand.hand.screen import Capture

RGB = Layout(4, 32, False, (0xFF0000, 0xFF00, 0xFF))
PADDED = Layout(2, 32, False, (0xF800, 0x7E0, 0x1F))


def capture(width: int, height: int, layout: Layout = RGB, region: tuple[int, int, int, int] | None = None) -> Capture:
    region = region or (0, 0, width, height)
    data = os.urandom(layout.stride(region[2] - region[0]) * (region[3] - region[1]))
    return Capture(data, region, (width, height), layout, 0.0, (0, 0))


def all_of(width: int, height: int) -> tuple[int, int, int, int]:
    return 0, 0, -(-width // TILE), -(-height // TILE)


@pytest.mark.parametrize("layout", [RGB, PADDED], ids=["24 bits", "16 bits, padded rows"])
@pytest.mark.parametrize("size", [(64, 64), (1, 1), (65, 63), (333, 201)])
def test_a_frame_is_the_capture(size: tuple[int, int], layout: Layout) -> None:
    taken = capture(*size, layout)
    assert frame_of(taken).rgb(all_of(*size)) == taken.rgb()


@pytest.mark.parametrize("region", [(64, 0, 128, 128), (0, 128, 333, 201), (256, 64, 333, 128), (0, 0, 333, 201)])
def test_a_part_is_put_in_where_it_was_taken(region: tuple[int, int, int, int]) -> None:
    whole, part = capture(333, 201), capture(333, 201, region=region)
    before = frame_of(whole)
    after = before.changed(part)
    x0, y0, x1, y1 = region
    rows = [bytearray(whole.rgb()[y * 999 : (y + 1) * 999]) for y in range(201)]
    width = 3 * (x1 - x0)
    for y in range(y0, y1):
        rows[y][3 * x0 : 3 * x1] = part.rgb()[(y - y0) * width : (y - y0 + 1) * width]
    assert after.rgb(all_of(333, 201)) == b"".join(rows)
    assert after.changed(part) is after


def test_a_part_of_another_screen_is_refused() -> None:
    before = frame_of(capture(333, 201))
    with pytest.raises(ValueError, match="region"):
        before.changed(capture(400, 201, region=(64, 64, 128, 128)))
    with pytest.raises(ValueError, match="region"):
        before.changed(capture(333, 201, region=(10, 64, 128, 128)))


@given(st.sets(st.integers(0, 20 * 13 - 1)))
def test_rectangles_hold_each_tile_once_and_nothing_else(tiles: set[int]) -> None:
    found = rectangles(tiles, 20)
    covered = [y * 20 + x for c, r, w, h in found for y in range(r, r + h) for x in range(c, c + w)]
    assert sorted(covered) == sorted(tiles)
    assert len(found) <= max(1, len(tiles))


def test_a_full_screen_is_one_rectangle() -> None:
    assert rectangles(range(260), 20) == [(0, 0, 20, 13)]
    assert rectangles([0, 1, 20, 21, 45], 20) == [(0, 0, 2, 2), (5, 2, 1, 1)]


@given(st.integers(-50, 700), st.integers(-50, 500), st.integers(0, 300), st.integers(0, 300))
def test_touched_tiles_are_those_with_a_pixel_of_it(x: int, y: int, width: int, height: int) -> None:
    columns = -(-640 // TILE)
    across = {column // TILE for column in range(max(0, x), min(640, x + width))}
    down = {row // TILE for row in range(max(0, y), min(480, y + height))}
    expected = {row * columns + column for row in down for column in across}
    assert touched((x, y, width, height), (640, 480)) == expected
