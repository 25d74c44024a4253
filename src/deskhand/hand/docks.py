"""Panels that hide when a window covers them (EWMH, _NET_WM_WINDOW_TYPE_DOCK, _NET_WM_STRUT_PARTIAL)."""

from __future__ import annotations

from typing import List

from .errors import RequestFailed
from .screen_watch import Rect
from .windows import MOST_WINDOWS
from .x11 import Connection, core

#: A panel that is hidden already is a strip at most this thick, or off the screen but for as much. Pixels.
HIDDEN = 8


def hiding_docks(conn: Connection) -> List[Rect]:
    """Where docks are shown now that reserve no space on the screen, [x, y, width, height]: those that may hide."""
    clients = core.get_property(conn, conn.root, conn.atom("_NET_CLIENT_LIST")).cardinals()[:MOST_WINDOWS]
    kind, strut, partial, dock = conn.atoms(
        ["_NET_WM_WINDOW_TYPE", "_NET_WM_STRUT", "_NET_WM_STRUT_PARTIAL", "_NET_WM_WINDOW_TYPE_DOCK"]
    )
    asked = [(window, core.ask_property(conn, window, kind)) for window in clients]
    docks = []
    for window, question in asked:
        try:
            if dock in core.take_property(conn, window, kind, question).cardinals():
                docks.append(window)
        except RequestFailed:
            continue  # gone
    screen = core.get_geometry(conn, conn.root)
    found = []
    for window in docks:
        try:
            reserved = [*core.get_property(conn, window, strut).cardinals()]
            reserved += core.get_property(conn, window, partial).cardinals()
            geometry = core.get_geometry(conn, window)
            place = core.translate_coordinates(conn, window, conn.root, 0, 0)
        except RequestFailed:
            continue
        x, y = place[-2:]
        wide = min(x + geometry.width, screen.width) - max(x, 0)
        high = min(y + geometry.height, screen.height) - max(y, 0)
        if not any(reserved) and min(wide, high) > HIDDEN:
            found.append((x, y, geometry.width, geometry.height))
    return found
