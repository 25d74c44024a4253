"""What has been drawn (DAMAGE Extension)."""

from __future__ import annotations

import struct

from .connection import Connection

RAW_RECTANGLES, DELTA_RECTANGLES, BOUNDING_BOX, NON_EMPTY = 0, 1, 2, 3


def available(conn: Connection) -> bool:
    """Whether the server has DAMAGE; must be asked before anything else here (it negotiates the version)."""
    extension = conn.extension("DAMAGE")
    if extension is None:
        return False
    conn.call(extension.major, 0, struct.pack("=II", 1, 1))
    return True


def create(conn: Connection, drawable: int, level: int, ignore: bool = False) -> int:
    """Begin to report damage of ``drawable`` and what is inside it, as ``DAMAGE.Notify`` events.

    With ``ignore`` a drawable that is gone is no error; no events come then.
    """
    extension = conn.extension("DAMAGE")
    assert extension is not None
    damage = conn.new_id()
    conn.send(extension.major, 1, struct.pack("=IIB3x", damage, drawable, level), ignore=ignore)
    return damage


def subtract(conn: Connection, damage: int) -> None:
    """Forget all damage so far; for every level but raw, events come again after it."""
    extension = conn.extension("DAMAGE")
    assert extension is not None
    conn.send(extension.major, 3, struct.pack("=III", damage, 0, 0), ignore=True)


def destroy(conn: Connection, damage: int) -> None:
    extension = conn.extension("DAMAGE")
    assert extension is not None
    conn.send(extension.major, 2, struct.pack("=I", damage), ignore=True)
