"""When is a picture near the one three seconds later?"""

from __future__ import annotations

import pytest
from bench.settle.measures import against_fixed, clairvoyant, cosmetic, near, regions, steady

from .settle_traces import Box, frame, recorded, tiles, trace

LARGE: Box = (200, 200, 400, 300)


@pytest.mark.parametrize(
    ("boxes", "sizes"),
    [
        ([(8, 8, 8, 8)], [(1, 1)]),
        ([(0, 0, 16, 40)], [(2, 5)]),
        ([(0, 0, 8, 8), (8, 8, 8, 8)], [(2, 2)]),  # corners connect
        ([(0, 0, 8, 8), (16, 0, 8, 8)], [(1, 1), (1, 1)]),
        ([(1272, 0, 8, 8), (0, 8, 8, 8)], [(1, 1), (1, 1)]),  # the end of a row and the start of the next do not
    ],
)
def test_regions_are_connected_tiles(boxes: list[Box], sizes: list[tuple[int, int]]) -> None:
    assert sorted(regions([tile for box in boxes for tile in tiles(box)])) == sizes


@pytest.mark.parametrize(
    ("boxes", "is_near", "is_cosmetic"),
    [
        ([], True, True),
        ([(8, 8, 16, 40)], True, True),
        ([(8, 8, 17, 40)], False, False),
        ([(8, 8, 16, 41)], False, True),
        ([(8, 8, 8, 8), (40, 8, 8, 8), (80, 8, 8, 8)], True, True),
        ([(8, 8, 8, 8), (40, 8, 8, 8), (80, 8, 8, 8), (120, 8, 8, 8)], False, False),
        ([(8, 8, 8, 400), (40, 8, 8, 400), (80, 8, 8, 400)], False, True),
        ([(8, 8, 8, 400), (40, 8, 8, 400), (80, 8, 8, 400), (120, 8, 8, 400)], False, False),
    ],
)
def test_what_is_forgiven(boxes: list[Box], is_near: bool, is_cosmetic: bool) -> None:
    made = trace([frame(1.0 + number / 100, box) for number, box in enumerate(boxes)])
    assert (near(made, 0.5), cosmetic(made, 0.5)) == (is_near, is_cosmetic)


def test_only_the_next_three_seconds_count() -> None:
    made = trace([frame(4.0, LARGE)])
    assert near(made, 0.9)
    assert not near(made, 1.1)


def test_a_change_that_is_taken_back_is_none() -> None:
    made = trace([frame(0.2, LARGE), frame(0.4, LARGE, content=0)])
    assert near(made, 0.1)
    assert not near(made, 0.3)
    assert near(made, 0.4)


def test_the_clairvoyant_is_lucky_and_the_steady_one_is_not() -> None:
    made = trace([frame(0.2, LARGE), frame(0.4, LARGE, content=0), frame(0.6, (0, 0, 8, 8))])
    assert clairvoyant(made) == 0.0
    assert steady(made) == 0.4


def test_the_clairvoyant_waits_until_the_bound_when_nothing_is_right() -> None:
    never = trace([frame(0.01 * step, LARGE) for step in range(1, 500)])
    assert clairvoyant(never, bound=1.5) == 1.5
    assert steady(never, bound=1.5) == 1.5


def test_a_recorded_scroll_bar_that_fades_is_cosmetic_and_not_near() -> None:
    scroll = recorded("ff-scroll")
    assert not near(scroll, 0.5)
    assert cosmetic(scroll, 0.5)
    assert near(scroll, 2.0)


def test_times_the_steps_of_a_fixed_wait() -> None:
    assert against_fixed([0.384] * 3) == pytest.approx(5.0)
    assert against_fixed([2.0]) == pytest.approx(1.0)
