"""PNG files that others read, whichever compressor made them."""

from __future__ import annotations

import io
import os
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.hand import accelerators, png


def decode(content: bytes) -> tuple[int, int, bytes]:
    """Size and pixels, by the words of the specification; checks every length and checksum."""
    assert content.startswith(png.SIGNATURE)
    at, chunks = 8, []
    while at < len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", content, at + 8 + length)[0] == zlib.crc32(kind + data)
        chunks.append((kind, data))
        at += 12 + length
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    assert rest == [8, 2, 0, 0, 0]
    raw = zlib.decompress(chunks[1][1])
    rows = [raw[at : at + 1 + 3 * width] for at in range(0, len(raw), 1 + 3 * width)]
    assert len(rows) == height
    assert {row[0] for row in rows} == {0}
    return width, height, b"".join(row[1:] for row in rows)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.booleans())
def test_the_same_pixels_come_out(width: int, height: int, alone: bool) -> None:
    rgb = os.urandom(3 * width * height)
    if alone:
        accelerators.without()
    try:
        content = png.encode(rgb, width, height)
    finally:
        accelerators.again()
    assert decode(content) == (width, height, rgb)


@pytest.mark.parametrize("alone", [False, True])
def test_as_pillow_reads_it(alone: bool) -> None:
    image = pytest.importorskip("PIL.Image")
    rgb = os.urandom(3 * 301 * 97)
    if alone:
        accelerators.without()
    try:
        content = png.encode(rgb, 301, 97)
    finally:
        accelerators.again()
    read = image.open(io.BytesIO(content))
    assert (read.format, read.mode, read.size) == ("PNG", "RGB", (301, 97))
    assert read.tobytes() == rgb


def test_a_large_picture_and_its_size() -> None:
    rgb = bytes((i >> 3) & 0xFF for i in range(3 * 1280)) * 800
    accelerators.without()
    try:
        alone = png.encode(rgb, 1280, 800)
    finally:
        accelerators.again()
    fast = png.encode(rgb, 1280, 800)
    assert decode(fast) == decode(alone) == (1280, 800, rgb)
    assert max(len(fast), len(alone)) < len(rgb) // 10


@pytest.mark.parametrize(("rgb", "size"), [(b"", (0, 0)), (b"\0" * 3, (1, 2)), (b"\0" * 7, (1, 2)), (b"", (0, 5))])
def test_what_is_no_picture_is_refused(rgb: bytes, size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="pixels of 3 bytes"):
        png.encode(rgb, *size)
