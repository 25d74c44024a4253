"""Positions from a batch's space to pixels and back."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deskhand.hand.coordinates import Space, check_space

SIZES = st.tuples(st.integers(1, 8000), st.integers(1, 8000))
GRIDS = st.sampled_from([99, 100, 999, 1000, 65535])
FRACTION = st.floats(0, 1)


def spaces(size: tuple[int, int]) -> st.SearchStrategy[Any]:
    pictures = SIZES.map(lambda wh: {"picture": list(wh)})
    return st.one_of(st.just("screen"), pictures, GRIDS.map(lambda n: {"grid": n}))


def test_a_picture_half_the_size_of_the_screen() -> None:
    space = Space({"picture": [1280, 720]}, (2560, 1440))
    assert space.point(0, 0) == (0, 0)
    x, y = space.point(1279, 719)
    assert x in (2558, 2559)
    assert y in (1438, 1439)
    with pytest.raises(ValueError, match=r"\(1280, 10\) is outside the 1280x720 picture: use x 0-1279, y 0-719"):
        space.point(1280, 10)


def test_the_screen_is_itself() -> None:
    space = Space("screen", (1280, 800))
    assert space.point(1279, 799) == (1279, 799)
    for x, y in ((1280, 5), (5, 800), (-1, 5), (5, -1), (1400, 20)):
        with pytest.raises(ValueError, match=r"is outside the 1280x800 screen: use x 0-1279, y 0-799"):
            space.point(x, y)


@pytest.mark.parametrize("last", [999, 1000])
def test_a_grid_reaches_from_the_first_pixel_to_the_last(last: int) -> None:
    space = Space({"grid": last}, (1920, 1080))
    assert space.point(0, 0) == (0, 0)
    assert space.point(last, last) == (1919, 1079)
    assert space.point(last / 2, last / 2) == (960, 540)
    with pytest.raises(ValueError, match=f"outside the 0-{last} grid"):
        space.point(last + 1, 0)


def test_a_position_is_rounded_to_the_nearest_pixel() -> None:
    space = Space("screen", (100, 100))
    assert space.point(3.4, 3.5) == (3, 4)


@given(size=SIZES, data=st.data(), fx=FRACTION, fy=FRACTION)
def test_every_position_of_a_space_is_on_the_screen(
    size: tuple[int, int], data: st.DataObject, fx: float, fy: float
) -> None:
    space = Space(data.draw(spaces(size)), size)
    x, y = space.point(fx * space.last[0], fy * space.last[1])
    assert 0 <= x < size[0]
    assert 0 <= y < size[1]


@given(size=SIZES, data=st.data(), fx=FRACTION, fy=FRACTION)
def test_forward_and_back_within_a_pixel(size: tuple[int, int], data: st.DataObject, fx: float, fy: float) -> None:
    space = Space(data.draw(spaces(size)), size)
    # Pixels of the space, there and back: exact within what one screen pixel is worth, one at least.
    at = round(fx * space.last[0]), round(fy * space.last[1])
    back = space.back(*space.point(*at))
    for axis in (0, 1):
        worth = space.last[axis] / max(1, size[axis] - 1)
        assert abs(back[axis] - at[axis]) <= max(1, worth / 2 + 0.5) or size[axis] == 1
    # Pixels of the screen, there and back.
    pixel = round(fx * (size[0] - 1)), round(fy * (size[1] - 1))
    again = space.point(*space.back(*pixel))
    for axis in (0, 1):
        worth = (size[axis] - 1) / max(1, space.last[axis])
        assert abs(again[axis] - pixel[axis]) <= max(1, worth / 2 + 0.5) or space.last[axis] == 0


@given(size=SIZES, data=st.data(), numbers=st.lists(FRACTION, min_size=4, max_size=4))
def test_every_region_of_a_space_is_one_of_the_screen(
    size: tuple[int, int], data: st.DataObject, numbers: list[float]
) -> None:
    space = Space(data.draw(spaces(size)), size)
    ends = [last + (0 if space.is_grid else 1) for last in space.last]
    (left, right), (top, bottom) = sorted(numbers[:2]), sorted(numbers[2:])
    corners = [left * ends[0], top * ends[1], right * ends[0], bottom * ends[1]]
    assume(corners[0] < corners[2] and corners[1] < corners[3])
    x0, y0, x1, y1 = space.region(corners)
    assert 0 <= x0 < x1 <= size[0]
    assert 0 <= y0 < y1 <= size[1]


@given(size=SIZES, picture=SIZES)
def test_a_sliver_at_the_very_edge_is_the_last_pixel(size: tuple[int, int], picture: tuple[int, int]) -> None:
    x0, y0 = (math.nextafter(edge, 0) for edge in picture)
    region = Space({"picture": list(picture)}, size).region([x0, y0, *picture])
    assert region == (size[0] - 1, size[1] - 1, *size)


@given(size=SIZES)
def test_the_whole_space_is_the_whole_screen(size: tuple[int, int]) -> None:
    for form, end in (("screen", size), ({"picture": [640, 400]}, (640, 400)), ({"grid": 999}, (999, 999))):
        assert Space(form, size).region([0, 0, *end]) == (0, 0, *size)


@pytest.mark.parametrize("corners", [[0, 0, 0, 10], [5, 5, 4, 10], [0, 0, 1281, 10], [0, 0, 10, 801], [-1, 0, 10, 10]])
def test_a_region_that_is_none_is_refused(corners: list[float]) -> None:
    with pytest.raises(ValueError, match="is not inside the 1280x800 screen"):
        Space("screen", (1280, 800)).region(corners)


@pytest.mark.parametrize("form", ["screen", {"picture": [1, 1]}, {"picture": [65535, 65535]}, {"grid": 999}])
def test_forms_that_are_taken(form: Any) -> None:
    check_space(form)


def test_a_picture_of_one_pixel() -> None:
    assert Space({"picture": [1, 1]}, (1280, 800)).point(0, 0) == (0, 0)
