"""What the server says of itself when a connection is set up (X Window System Protocol, section 8)."""

from __future__ import annotations

import struct
from typing import Dict, List, NamedTuple, Tuple


class Visual(NamedTuple):
    """One visual type. ``kind`` 4 is TrueColor, 5 DirectColor; the others are indexed."""

    id: int
    kind: int
    depth: int
    red_mask: int
    green_mask: int
    blue_mask: int


class Format(NamedTuple):
    """How an image of one depth is laid out in memory."""

    depth: int
    bits_per_pixel: int
    scanline_pad: int


class Screen(NamedTuple):
    """A screen, as it was when the connection was opened: its size may have changed since."""

    root: int
    width: int
    height: int
    root_visual: int
    root_depth: int


class Setup:
    """The connection's resource ids and limits, and the server's formats, visuals and screens.

    ``max_request_length`` counts 4-byte units.
    """

    def __init__(self) -> None:
        self.release = 0
        self.id_base = 0
        self.id_mask = 0
        self.max_request_length = 0
        self.image_byte_order = "little"
        self.min_keycode = 8
        self.max_keycode = 255
        self.vendor = ""
        self.formats: Dict[int, Format] = {}
        self.visuals: Dict[int, Visual] = {}
        self.screens: List[Screen] = []


def parse_setup(body: bytes) -> Setup:
    """The additional data of a successful connection set-up, decoded."""
    setup = Setup()
    head = struct.unpack_from("=IIIIHHBBBBBBBB4x", body)
    setup.release, setup.id_base, setup.id_mask = head[0], head[1], head[2]
    vendor_length, setup.max_request_length, screens, formats, order = head[4:9]
    setup.image_byte_order = "big" if order else "little"
    setup.min_keycode, setup.max_keycode = head[12], head[13]
    setup.vendor = body[32 : 32 + vendor_length].decode("latin-1")
    at = 32 + vendor_length + -vendor_length % 4
    for _ in range(formats):
        depth, bits, pad = struct.unpack_from("=BBB5x", body, at)
        setup.formats[depth] = Format(depth, bits, pad)
        at += 8
    for _ in range(screens):
        at = _parse_screen(setup, body, at)
    return setup


def _parse_screen(setup: Setup, body: bytes, at: int) -> int:
    fields: Tuple[int, ...] = struct.unpack_from("=IIIIIHHHHHHIBBBB", body, at)
    root, width, height, visual, depth, depths = fields[0], fields[5], fields[6], fields[11], fields[14], fields[15]
    setup.screens.append(Screen(root, width, height, visual, depth))
    at += 40
    for _ in range(depths):
        level, count = struct.unpack_from("=BxH4x", body, at)
        at += 8
        for _ in range(count):
            number, kind, _bits, _entries, red, green, blue = struct.unpack_from("=IBBHIII4x", body, at)
            setup.visuals[number] = Visual(number, kind, level, red, green, blue)
            at += 24
    return at
