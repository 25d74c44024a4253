"""The cursor's picture, and notice of a new selection owner (XFIXES Extension)."""

from __future__ import annotations

import struct
from typing import NamedTuple

from .connection import Connection

#: XFixesSelectSelectionInput: a new owner, the owner's window destroyed, its connection closed.
SELECTION_CHANGES = 7


class CursorImage(NamedTuple):
    """``x``, ``y`` is the hot spot on the root window; ``argb`` holds 32-bit premultiplied pixels in native order."""

    x: int
    y: int
    width: int
    height: int
    hot_x: int
    hot_y: int
    serial: int
    name: str
    argb: bytes


def available(conn: Connection) -> bool:
    """Whether the server has XFIXES; must be asked before anything else here (it negotiates the version)."""
    extension = conn.extension("XFIXES")
    if extension is None:
        return False
    conn.call(extension.major, 0, struct.pack("=II", 5, 0))
    return True


def get_cursor_image(conn: Connection) -> CursorImage:
    """XFixesGetCursorImageAndName: the cursor as it is shown now."""
    extension = conn.extension("XFIXES")
    assert extension is not None
    data = conn.call(extension.major, 25)
    x, y, width, height, hot_x, hot_y, serial, _atom, length = struct.unpack_from("=hhHHHHIIH", data, 8)
    size = 4 * width * height
    name = data[32 + size : 32 + size + length].decode("latin-1")
    return CursorImage(x, y, width, height, hot_x, hot_y, serial, name, data[32 : 32 + size])


def select_selection_input(conn: Connection, window: int, selection: int, mask: int = SELECTION_CHANGES) -> None:
    extension = conn.extension("XFIXES")
    assert extension is not None
    conn.send(extension.major, 2, struct.pack("=III", window, selection, mask))


def select_cursor_input(conn: Connection, window: int, on: bool) -> None:
    """XFixesSelectCursorInput: ``XFIXES.CursorNotify`` whenever another cursor is shown."""
    extension = conn.extension("XFIXES")
    assert extension is not None
    conn.send(extension.major, 3, struct.pack("=II", window, int(on)))
