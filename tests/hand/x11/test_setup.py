"""What a server says of itself, as xcffib reads it too."""

from __future__ import annotations

import pytest
from tests.xservers import xcb, xvfb_with

from deskhand.hand.x11 import Connection


@pytest.mark.parametrize("screen", ["641x480x8", "641x480x16", "641x480x24", "1279x801x30"])
def test_the_same_as_xcffib_reads(screen: str) -> None:
    with xvfb_with(screen=screen) as name, Connection.open(name) as connection, xcb(name) as theirs:
        ours, other = connection.setup, theirs.get_setup()
        assert ours.release == other.release_number
        assert ours.id_mask == other.resource_id_mask
        assert ours.id_base & ~ours.id_mask == ours.id_base != 0
        assert ours.max_request_length == other.maximum_request_length
        assert (ours.min_keycode, ours.max_keycode) == (other.min_keycode, other.max_keycode)
        assert ours.image_byte_order == ("big" if other.image_byte_order else "little")
        assert ours.vendor == "".join(other.vendor.to_string())
        assert list(ours.formats.values()) == [
            (one.depth, one.bits_per_pixel, one.scanline_pad) for one in other.pixmap_formats
        ]
        assert len(ours.screens) == len(other.roots)
        root = other.roots[0]
        width, height, depth = (int(part) for part in screen.split("x"))
        assert connection.screen == (root.root, root.width_in_pixels, root.height_in_pixels, root.root_visual, depth)
        assert connection.screen[1:3] == (width, height)
        assert list(ours.visuals.values()) == [
            (visual.visual_id, visual._class, level.depth, visual.red_mask, visual.green_mask, visual.blue_mask)
            for level in root.allowed_depths
            for visual in level.visuals
        ]


def test_the_second_screen() -> None:
    with xvfb_with("-screen", "1", "320x200x24") as name, Connection.open(name + ".1") as connection:
        assert len(connection.setup.screens) == 2
        assert (connection.screen.width, connection.screen.height) == (320, 200)
