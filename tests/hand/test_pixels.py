"""From the server's pixels to RGB, and smaller pictures: the same with and without Pillow."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.hand import accelerators, pixels
from deskhand.hand.errors import Unsupported
from deskhand.hand.pixels import Layout
from deskhand.hand.x11.setup import Format, Setup, Visual


@pytest.fixture
def alone() -> Iterator[None]:
    """Nothing but the standard library."""
    accelerators.without()
    yield
    accelerators.again()


LAYOUTS = {
    "24 in 32": Layout(4, 32, False, (0xFF0000, 0xFF00, 0xFF)),
    "24 in 32, blue first": Layout(4, 32, False, (0xFF, 0xFF00, 0xFF0000)),
    "24 in 32, big": Layout(4, 32, True, (0xFF0000, 0xFF00, 0xFF)),
    "24 in 24": Layout(3, 32, False, (0xFF0000, 0xFF00, 0xFF)),
    "30 in 32": Layout(4, 32, False, (0x3FF00000, 0xFFC00, 0x3FF)),
    "16": Layout(2, 32, False, (0xF800, 0x7E0, 0x1F)),
    "16, big": Layout(2, 32, True, (0xF800, 0x7E0, 0x1F)),
    "15": Layout(2, 32, False, (0x7C00, 0x3E0, 0x1F)),
}


def slowly(data: bytes, width: int, height: int, layout: Layout) -> bytes:
    """One pixel after the other, by the words of the specification."""
    out = bytearray()
    for y in range(height):
        for x in range(width):
            at = y * layout.stride(width) + x * layout.bytes_per_pixel
            value = int.from_bytes(data[at : at + layout.bytes_per_pixel], "big" if layout.big_endian else "little")
            for mask in layout.masks:
                low = (mask & -mask).bit_length() - 1
                part, top = (value & mask) >> low, mask >> low
                out.append(part >> 2 if top == 1023 else round(part * 255 / top))
    return bytes(out)


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_layout_as_the_specification_says(name: str, data: st.DataObject) -> None:
    layout = LAYOUTS[name]
    width, height = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 4))
    size = layout.stride(width) * height
    content = data.draw(st.binary(min_size=size, max_size=size))
    expected = slowly(content, width, height, layout)
    assert pixels.to_rgb(content, width, height, layout) == expected
    accelerators.without()
    try:
        assert pixels.to_rgb(content, width, height, layout) == expected
    finally:
        accelerators.again()


@pytest.mark.parametrize(
    ("width", "bytes_each", "pad", "stride"),
    [(1279, 2, 32, 2560), (1280, 2, 32, 2560), (1, 3, 32, 4), (5, 4, 32, 20), (3, 2, 8, 6)],
)
def test_stride(width: int, bytes_each: int, pad: int, stride: int) -> None:
    assert Layout(bytes_each, pad, False, (0, 0, 0)).stride(width) == stride


def test_a_server_may_send_more_than_the_rows() -> None:
    layout = LAYOUTS["24 in 32"]
    assert pixels.to_rgb(b"\3\2\1\0" * 2 + b"rest", 2, 1, layout) == b"\1\2\3\1\2\3"


def setup_of(kind: int, bits: int, depth: int) -> Setup:
    setup = Setup()
    setup.visuals[33] = Visual(33, kind, depth, 0xFF0000, 0xFF00, 0xFF)
    setup.formats[depth] = Format(depth, bits, 32)
    return setup


def test_layouts_of_servers() -> None:
    assert pixels.layout_of(setup_of(4, 32, 24), 24, 33) == LAYOUTS["24 in 32"]
    assert pixels.layout_of(setup_of(5, 32, 24), 24, 33) == LAYOUTS["24 in 32"]  # DirectColor
    for kind in (0, 1, 2, 3):
        with pytest.raises(Unsupported, match="depth 8 and a palette, which can not be read: start the X server with"):
            pixels.layout_of(setup_of(kind, 8, 8), 8, 33)
    for depth, visual in ((24, 34), (32, 33)):
        with pytest.raises(Unsupported, match=f"depth {depth}, which can not be read"):
            pixels.layout_of(setup_of(4, 32, 24), depth, visual)


def test_blank() -> None:
    assert pixels.is_blank(b"\1\2\3" * 5000)
    assert pixels.is_blank(b"\1\2\3")
    assert not pixels.is_blank(b"\1\2\3" * 4999 + b"\1\2\4")
    assert not pixels.is_blank(b"\1\2\3" * 2 + b"\1\2\4" * 3)
    assert not pixels.is_blank(b"\1\2\4" + b"\1\2\3" * 4999)


@pytest.mark.parametrize(
    ("size", "edge", "expected"),
    [
        ((1280, 800), 1280, (1280, 800)),
        ((1280, 800), 5000, (1280, 800)),
        ((2560, 1440), 1280, (1280, 720)),
        ((1440, 2560), 1280, (720, 1280)),
        ((4880, 2560), 2576, (2576, 1351)),
        ((5000, 1), 100, (100, 1)),
    ],
)
def test_fit(size: tuple[int, int], edge: int, expected: tuple[int, int]) -> None:
    assert pixels.fit(*size, edge) == expected


def checkerboard(width: int, height: int, square: int) -> bytes:
    return bytes(
        channel
        for y in range(height)
        for x in range(width)
        for channel in (((x // square + y // square) % 2 * 255,) * 3)
    )


@pytest.mark.parametrize("with_pillow", [True, False])
def test_a_smaller_picture_still_shows_what_was_there(with_pillow: bool) -> None:
    if with_pillow and accelerators.pillow() is None:
        pytest.skip("Pillow is not installed")
    if not with_pillow:
        accelerators.without()
    try:
        one_colour = bytes((10, 200, 30)) * (64 * 40)
        assert pixels.shrink(one_colour, 64, 40, 32, 20) == bytes((10, 200, 30)) * (32 * 20)
        small = pixels.shrink(checkerboard(64, 64, 16), 64, 64, 32, 32)
        assert len(small) == 3 * 32 * 32
        for y in range(0, 32, 8):
            for x in range(0, 32, 8):  # the middle of each square keeps its colour
                at = 3 * (32 * (y + 4) + x + 4)
                assert small[at] == (x // 8 + y // 8) % 2 * 255
        fine = pixels.shrink(checkerboard(64, 64, 1), 64, 64, 32, 32)  # single pixels are mixed, not dropped
        assert set(fine) <= {127, 128}
        for new in ((1, 1), (63, 63), (5, 64), (64, 5), (1, 64)):
            assert len(pixels.shrink(checkerboard(64, 64, 4), 64, 64, *new)) == 3 * new[0] * new[1]
    finally:
        accelerators.again()


@pytest.mark.parametrize("factor", [1.1, 1.5, 1.9, 2.0])
def test_no_line_gets_lost_down_to_half(alone: None, factor: float) -> None:
    """A one-pixel line, as text and frames are made of, must leave something in the smaller picture."""
    width, height = 100, 60
    new = round(width / factor), round(height / factor)
    for line in range(width):
        rgb = b"".join(b"\xff\xff\xff" if x == line else b"\0\0\0" for x in range(width)) * height
        assert max(pixels.shrink(rgb, width, height, *new)) > 60, line
    for line in range(height):
        rgb = b"".join((b"\xff\xff\xff" if y == line else b"\0\0\0") * width for y in range(height))
        assert max(pixels.shrink(rgb, width, height, *new)) > 60, line


def test_shrinking_keeps_places(alone: None) -> None:
    """What is at a place in the full picture is at the same place, scaled, in the small one."""
    rng = random.Random(5)
    for _ in range(20):
        width, height = rng.randrange(200, 400), rng.randrange(200, 400)
        new_width, new_height = rng.randrange(100, width), rng.randrange(100, height)
        x, y = rng.randrange(width - 12), rng.randrange(height - 12)
        rgb = bytearray(3 * width * height)
        for row in range(y, y + 12):
            rgb[3 * (row * width + x) : 3 * (row * width + x + 12)] = b"\xff" * 36
        small = pixels.shrink(bytes(rgb), width, height, new_width, new_height)
        lit = [i // 3 for i in range(0, len(small), 3) if small[i] > 127]
        assert lit
        middle_x = sum(i % new_width for i in lit) / len(lit) + 0.5
        middle_y = sum(i // new_width for i in lit) / len(lit) + 0.5
        assert abs(middle_x - (x + 6) * new_width / width) <= 1
        assert abs(middle_y - (y + 6) * new_height / height) <= 1


def test_blending_outside_changes_nothing() -> None:
    rgb = bytes(range(48))
    cursor = b"\xff\xff\xff\xff" * 4
    for left, top in ((-2, 0), (4, 0), (0, -2), (0, 4)):
        assert pixels.blend(rgb, 4, 4, cursor, 2, left, top) == rgb
    assert pixels.blend(rgb, 4, 4, b"", 0, 0, 0) == rgb
    assert pixels.blend(rgb, 4, 4, cursor, 2, 3, 3) == rgb[:-3] + b"\xff\xff\xff"
    assert pixels.blend(rgb, 4, 4, bytes(16), 2, 0, 0) == rgb
