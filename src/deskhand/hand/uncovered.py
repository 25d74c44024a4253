"""Places where a window has gone: they go on showing it until what is behind them has painted.

An X server paints nothing there by itself when the windows behind have no background, as those of GTK and Qt have not
(X Window System Protocol, CreateWindow, "background-pixmap None").
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from .errors import RequestFailed
from .x11 import Connection, Event, core

Rect = Tuple[int, int, int, int]
#: This part of the place must have changed: what a dialog draws once more just before it goes is not enough.
PAINTED_PART = 0.5


class Uncovered(NamedTuple):
    """``rect`` is x, y, width and height of the window, in root-window pixels; ``time`` when it went."""

    window: int
    time: float
    rect: Rect


class UncoveredPlaces:
    """Follows the children of the root window from its creation on, by the events that ``take`` is given."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._rects: Dict[int, Rect] = {}
        self._places: List[Uncovered] = []
        children = core.query_tree(conn, conn.root)[2]
        for window, number in [(window, core.ask_geometry(conn, window)) for window in children]:
            try:
                geometry = core.parse_geometry(conn.reply(number))
            except RequestFailed:
                continue  # gone already
            if geometry.depth:  # of a window that is for input only it is 0, and there is nothing to see of it
                self._rects[window] = (geometry.x, geometry.y, geometry.width, geometry.height)

    def take(self, event: Event) -> None:
        if event.name == "CreateNotify":
            if event["parent"] == self._conn.root:
                self._rects[event["window"]] = _rect_of(event)
        elif event.name == "ConfigureNotify":
            if event["window"] in self._rects and event["event"] == self._conn.root:
                self._rects[event["window"]] = _rect_of(event)
        elif event.name == "MapNotify":
            self._places = [place for place in self._places if place.window != event["window"]]
        elif event.name == "UnmapNotify":
            rect = self._rects.get(event["window"])
            if rect is not None and event["event"] == self._conn.root:
                self._places.append(Uncovered(event["window"], time.monotonic(), rect))
        elif event.name == "ReparentNotify":
            if event["parent"] != self._conn.root:
                self._rects.pop(event["window"], None)
        elif event.name == "DestroyNotify":
            self._rects.pop(event["window"], None)

    def unpainted(
        self, since: float, changed: Callable[[float], Sequence[Rect]], screen: Tuple[int, int]
    ) -> List[Uncovered]:
        """Those that went after ``since`` and have hardly changed. ``changed`` tells what has since a time."""
        return [
            place
            for place in self._places
            if place.time > since
            and _shared(place.rect, changed(place.time)) < PAINTED_PART * _shared(place.rect, [(0, 0, *screen)])
        ]


def _rect_of(event: Any) -> Rect:
    return event["x"], event["y"], event["width"], event["height"]


def _shared(rect: Rect, others: Sequence[Rect]) -> int:
    """Pixels that ``rect`` has in common with the others; what two of them cover counts twice."""
    x, y, width, height = rect
    return sum(
        max(0, min(x + width, left + wide) - max(x, left)) * max(0, min(y + height, top + high) - max(y, top))
        for left, top, wide, high in others
    )
