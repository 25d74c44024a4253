from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import pictures
from deskhand.hand.coordinates import Space
from deskhand.hand.pixels import fit
from deskhand.pictures import Limits, picture_size, resized_by_model

VENDORS = {name: value for name, value in vars(pictures).items() if isinstance(value, Limits)}
screens = st.tuples(st.integers(64, 7680), st.integers(64, 4320))
limits = st.sampled_from(list(VENDORS.values()))


@given(screens, limits)
def test_it_keeps_the_limits_never_enlarges_and_keeps_the_shape(screen: tuple[int, int], limit: Limits) -> None:
    width, height = picture_size(screen, limit)
    assert limit.allow((width, height)) or max(width, height) == 1
    assert 1 <= width <= screen[0]
    assert 1 <= height <= screen[1]
    scale = max(width, height) / max(screen)
    assert abs(width - screen[0] * scale) <= 0.5 + 1e-6 or width == 1
    assert abs(height - screen[1] * scale) <= 0.5 + 1e-6 or height == 1


@given(screens, limits)
def test_it_is_the_size_the_hand_makes_and_the_largest_one(screen: tuple[int, int], limit: Limits) -> None:
    size = picture_size(screen, limit)
    edge = max(size)
    assert fit(*screen, edge) == size
    if edge < max(screen):
        larger = fit(*screen, edge + 1)
        assert not limit.allow(larger) or edge == limit.max_edge


@given(screens, limits, st.data())
def test_a_click_lands_within_one_pixel_of_what_the_model_saw(
    screen: tuple[int, int], limit: Limits, data: st.DataObject
) -> None:
    size = picture_size(screen, limit)
    x, y = data.draw(st.tuples(st.integers(0, size[0] - 1), st.integers(0, size[1] - 1)))
    landed = Space({"picture": list(size)}, screen).point(x, y)
    for at, where, pixels, edge in zip((x, y), landed, size, screen, strict=True):
        ratio = edge / pixels
        # The screen's pixels that this pixel of the picture shows run from first to last.
        first, last = at * ratio, (at + 1) * ratio - 1
        assert first - 1 <= where <= last + 1
        if ratio <= 2:
            assert abs(where - (first + last) / 2) <= 1


@given(screens, limits, st.data())
def test_there_and_back_is_exact_in_the_picture(screen: tuple[int, int], limit: Limits, data: st.DataObject) -> None:
    size = picture_size(screen, limit)
    point = data.draw(st.tuples(st.integers(0, size[0] - 1), st.integers(0, size[1] - 1)))
    space = Space({"picture": list(size)}, screen)
    if min(size) > 1:
        assert space.back(*space.point(*point)) == point


@pytest.mark.parametrize(
    ("name", "screen", "expected"),
    [
        ("ANTHROPIC", (1280, 800), (1280, 800)),
        ("ANTHROPIC", (1920, 1080), (1430, 804)),
        ("ANTHROPIC_HIGH_RESOLUTION", (1920, 1080), (1920, 1080)),
        ("ANTHROPIC_HIGH_RESOLUTION", (3840, 2160), (2576, 1449)),
        ("OPENAI_PREVIEW", (1024, 768), (1024, 768)),
        ("GOOGLE", (1440, 900), (1440, 900)),
        ("GOOGLE", (1080, 1920), (810, 1440)),
    ],
)
def test_known_sizes(name: str, screen: tuple[int, int], expected: tuple[int, int]) -> None:
    assert picture_size(screen, VENDORS[name]) == expected


def test_a_screen_without_pixels_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1x1"):
        picture_size((0, 800), Limits())


@given(st.tuples(st.integers(200, 4000), st.integers(200, 4000)))
def test_the_models_own_resizing(size: tuple[int, int]) -> None:
    width, height = resized_by_model(size)
    assert width % 28 == height % 28 == 0
    assert width * height <= 12_845_056
    assert width * height >= 78_400 or min(size) < 280
