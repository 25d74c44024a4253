"""Monitors (RANDR Extension 1.5, RRGetMonitors)."""

from __future__ import annotations

import struct
from typing import List, NamedTuple

from .connection import Connection


class Monitor(NamedTuple):
    """A rectangle of the root window that one or more outputs show, in root-window pixels."""

    name: str
    primary: bool
    x: int
    y: int
    width: int
    height: int


def get_monitors(conn: Connection) -> List[Monitor]:
    """The active monitors; none when the server has no RANDR 1.5."""
    extension = conn.extension("RANDR")
    if extension is None:
        return []
    version = struct.unpack_from("=II", conn.call(extension.major, 0, struct.pack("=II", 1, 5)), 8)
    if version < (1, 5):
        return []
    data = conn.call(extension.major, 42, struct.pack("=IB3x", conn.root, 1))
    (count,) = struct.unpack_from("=I", data, 12)
    monitors, at = [], 32
    for _ in range(count):
        name, primary, _auto, outputs, x, y, width, height = struct.unpack_from("=IBBHhhHH8x", data, at)
        monitors.append(Monitor(conn.atom_name(name), bool(primary), x, y, width, height))
        at += 24 + 4 * outputs
    return monitors
