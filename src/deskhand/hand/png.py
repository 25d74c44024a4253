"""PNG out of RGB bytes (Portable Network Graphics Specification, 3rd edition: 5.2, 11.2 and 11.3).

Filter type 0 (None) on every row: on screens a fast deflate gains nothing from the others.
"""

from __future__ import annotations

import struct
import zlib
from typing import Iterable

from . import accelerators

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def encode(rgb: bytes, width: int, height: int) -> bytes:
    """An 8-bit truecolour PNG of ``height`` rows of ``width`` pixels, three bytes each, top row first."""
    if len(rgb) != 3 * width * height or not rgb:
        raise ValueError(f"{len(rgb)} bytes are not {width}x{height} pixels of 3 bytes")
    return encode_strips([rgb], width, height)


def encode_strips(strips: Iterable[bytes], width: int, height: int) -> bytes:
    """The same from whole rows, some at a time."""
    stride = 3 * width
    deflate = accelerators.deflate()
    data = []
    for strip in strips:
        view = memoryview(strip)
        rows = [view[at : at + stride] for at in range(0, len(strip), stride)]
        data.append(deflate.compress(b"\0" + b"\0".join(rows)))
    data.append(deflate.flush())
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", b"".join(data)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
