"""From the server's pixels to RGB bytes, and smaller pictures; standard library only, no loop over single pixels.

Bytes are moved by strided slices and ``bytes.translate``, and combined as one big integer: each is a loop in C.
"""

from __future__ import annotations

import struct
from operator import itemgetter
from typing import Dict, List, NamedTuple, Tuple

from . import accelerators
from .errors import Unsupported
from .x11.setup import Setup

TRUE_COLOR, DIRECT_COLOR = 4, 5


class Layout(NamedTuple):
    """How one pixel lies in memory. ``masks`` are those of red, green and blue within a pixel read as a number."""

    bytes_per_pixel: int
    scanline_pad: int
    big_endian: bool
    masks: Tuple[int, int, int]

    def stride(self, width: int) -> int:
        """Bytes from one row to the next."""
        bits = width * self.bytes_per_pixel * 8
        return (bits + self.scanline_pad - 1) // self.scanline_pad * self.scanline_pad // 8


def layout_of(setup: Setup, depth: int, visual_id: int) -> Layout:
    """The layout of ZPixmap images of that depth and visual (X Window System Protocol, section 1, Image format).

    Raises:
        Unsupported: the visual is indexed (a palette), or its pixels are not whole bytes.
    """
    visual = setup.visuals.get(visual_id)
    form = setup.formats.get(depth)
    if visual is None or form is None or visual.kind not in (TRUE_COLOR, DIRECT_COLOR) or form.bits_per_pixel < 16:
        with_a_palette = visual is not None and visual.kind < TRUE_COLOR
        raise Unsupported(
            f"the screen has depth {depth}{' and a palette' if with_a_palette else ''}, which can not be read:"
            " start the X server with depth 16, 24 or 30"
        )
    masks = (visual.red_mask, visual.green_mask, visual.blue_mask)
    return Layout(form.bits_per_pixel // 8, form.scanline_pad, setup.image_byte_order == "big", masks)


def to_rgb(data: bytes, width: int, height: int, layout: Layout) -> bytes:
    """``height`` rows of the server's pixels as RGB, 8 bits a channel, no padding."""
    size, stride = layout.bytes_per_pixel, layout.stride(width)
    if stride != width * size:
        data = b"".join([data[y * stride : y * stride + width * size] for y in range(height)])
    else:
        data = data[: stride * height]
    plain = not layout.big_endian and size == 4 and layout.masks == (0xFF0000, 0xFF00, 0xFF)
    image = accelerators.pillow() if plain else None
    if image is not None:
        return bytes(image.frombuffer("RGB", (width, height), data, "raw", "BGRX", 0, 1).tobytes())
    out = bytearray(3 * width * height)
    for channel, mask in enumerate(layout.masks):
        out[channel::3] = _channel(data, size, layout.big_endian, mask)
    return bytes(out)


def _channel(data: bytes, size: int, big_endian: bool, mask: int) -> bytes:
    """One channel of every pixel, as 8 bits."""
    low = (mask & -mask).bit_length() - 1
    width = mask.bit_length() - low
    if width > 8:  # depth 30: the eight high bits of ten
        low, width = low + width - 8, 8
    first, shift = divmod(low, 8)
    planes = [data[size - 1 - k if big_endian else k :: size] for k in range(first, min(first + 2, size))]
    part = planes[0]
    if shift or width < 8:
        part = part.translate(bytes((value >> shift) & ((1 << width) - 1) for value in range(256)))
    if shift + width > 8:
        rest = planes[1].translate(bytes((value << (8 - shift)) & ((1 << width) - 1) & 0xFF for value in range(256)))
        joined = int.from_bytes(part, "little") | int.from_bytes(rest, "little")
        part = joined.to_bytes(len(part), "little")
    if width < 8:
        top = (1 << width) - 1
        part = part.translate(bytes((min(value, top) * 255 + top // 2) // top for value in range(256)))
    return part


def blend(rgb: bytes, width: int, height: int, argb: bytes, cursor_width: int, left: int, top: int) -> bytes:
    """The picture with a cursor over it, its top left corner at (``left``, ``top``), which may be outside.

    ``argb`` are 32-bit pixels in native order, premultiplied by alpha (XFIXES, GetCursorImage).
    """
    out = bytearray(rgb)
    cursor = struct.unpack(f"={len(argb) // 4}I", argb)
    for row in range(max(0, -top), min(len(cursor) // max(1, cursor_width), height - top)):
        for column in range(max(0, -left), min(cursor_width, width - left)):
            pixel = cursor[row * cursor_width + column]
            rest = 255 - (pixel >> 24)
            if rest == 255:
                continue
            at = 3 * ((top + row) * width + left + column)
            for channel, shift in ((at, 16), (at + 1, 8), (at + 2, 0)):
                out[channel] = min(255, (pixel >> shift & 0xFF) + out[channel] * rest // 255)
    return bytes(out)


def is_blank(rgb: bytes) -> bool:
    """Whether every pixel has the same colour."""
    start = rgb[:3072]  # nearly always enough to tell
    return start == rgb[:3] * (len(start) // 3) and rgb == rgb[:3] * (len(rgb) // 3)


def fit(width: int, height: int, max_edge: int) -> Tuple[int, int]:
    """The size with the same shape whose long edge is at most ``max_edge``; never larger than it is."""
    edge = max(width, height)
    if edge <= max_edge:
        return width, height
    return max(1, round(width * max_edge / edge)), max(1, round(height * max_edge / edge))


def shrink(rgb: bytes, width: int, height: int, new_width: int, new_height: int) -> bytes:
    """A smaller picture. Pillow's area filter where it is installed, else the mean of four pixels for each."""
    image = accelerators.pillow()
    if image is not None:
        full = image.frombuffer("RGB", (width, height), rgb, "raw", "RGB", 0, 1)
        return bytes(full.resize((new_width, new_height), image.Resampling.BOX, reducing_gap=2.0).tobytes())
    columns = [min(width - 1, (2 * x + 1) * width // (2 * new_width)) for x in range(new_width)]
    left = itemgetter(*[3 * max(0, x - 1) + c for x in columns for c in range(3)])
    right = itemgetter(*[3 * x + c for x in columns for c in range(3)])
    stride = 3 * width
    out: List[bytes] = []
    cache: Dict[int, bytes] = {}
    for row in range(new_height):
        y = min(height - 1, (2 * row + 1) * height // (2 * new_height))
        halves = []
        for line in (max(0, y - 1), y):
            if line not in cache:
                pixels = rgb[line * stride : (line + 1) * stride]
                cache[line] = _mean(bytes(left(pixels)), bytes(right(pixels)))
            halves.append(cache[line])
        out.append(_mean(*halves))
        for line in [line for line in cache if line < y]:
            del cache[line]
    return b"".join(out)


def _mean(a: bytes, b: bytes) -> bytes:
    """The mean of each pair of bytes, rounded down: (a & b) + ((a ^ b) >> 1), all bytes at once."""
    first, second = int.from_bytes(a, "little"), int.from_bytes(b, "little")
    low_bits = int.from_bytes(b"\xfe" * len(a), "little")
    return ((first & second) + (((first ^ second) & low_bits) >> 1)).to_bytes(len(a), "little")
