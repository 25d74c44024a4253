"""Events, decoded (X Window System Protocol, Appendix B, Events; and the extensions' own)."""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, Tuple

_POINTER = (
    "B2xIIIIhhhhHB",
    ("detail", "time", "root", "event", "child", "root_x", "root_y", "x", "y", "state", "same_screen"),
)
_SELECTION_XFIXES = ("B2xIIIII", ("subtype", "window", "owner", "selection", "time", "selection_time"))

#: Name to the layout after the first byte and the names of its fields.
LAYOUTS: Dict[str, Tuple[str, Tuple[str, ...]]] = {
    "KeyPress": _POINTER,
    "KeyRelease": _POINTER,
    "ButtonPress": _POINTER,
    "ButtonRelease": _POINTER,
    "MotionNotify": _POINTER,
    "FocusIn": ("B2xIB", ("detail", "event", "mode")),
    "FocusOut": ("B2xIB", ("detail", "event", "mode")),
    "CreateNotify": (
        "x2xIIhhHHHB",
        ("parent", "window", "x", "y", "width", "height", "border_width", "override_redirect"),
    ),
    "DestroyNotify": ("x2xII", ("event", "window")),
    "UnmapNotify": ("x2xIIB", ("event", "window", "from_configure")),
    "MapNotify": ("x2xIIB", ("event", "window", "override_redirect")),
    "ReparentNotify": ("x2xIIIhhB", ("event", "window", "parent", "x", "y", "override_redirect")),
    "ConfigureNotify": (
        "x2xIIIhhHHHB",
        ("event", "window", "above_sibling", "x", "y", "width", "height", "border_width", "override_redirect"),
    ),
    "PropertyNotify": ("x2xIIIB", ("window", "atom", "time", "state")),
    "SelectionClear": ("x2xIII", ("time", "owner", "selection")),
    "SelectionRequest": ("x2xIIIIII", ("time", "owner", "requestor", "selection", "target", "property")),
    "SelectionNotify": ("x2xIIIII", ("time", "requestor", "selection", "target", "property")),
    "ClientMessage": ("B2xIIIIIII", ("format", "window", "type", "data0", "data1", "data2", "data3", "data4")),
    "MappingNotify": ("x2xBBB", ("request", "first_keycode", "count")),
    "DAMAGE.Notify": (
        "B2xIIIhhHHhhHH",
        (
            "level",
            "drawable",
            "damage",
            "time",
            "x",
            "y",
            "width",
            "height",
            "geometry_x",
            "geometry_y",
            "geometry_width",
            "geometry_height",
        ),
    ),
    "XFIXES.SelectionNotify": _SELECTION_XFIXES,
    "XFIXES.CursorNotify": ("B2xIIII", ("subtype", "window", "cursor_serial", "time", "cursor_name")),
}


class Event:
    """One event: ``event.name`` (``"MapNotify"``, ``"DAMAGE.Notify"``) and its fields, ``event["window"]``.

    ``synthetic`` is true when another client made it with SendEvent. ``data`` is the raw event.
    """

    __slots__ = ("_fields", "data", "name", "synthetic")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.synthetic = bool(data[0] & 0x80)
        self.data = data
        layout = LAYOUTS.get(name)
        self._fields: Dict[str, int] = {}
        if layout is not None:
            self._fields = dict(zip(layout[1], struct.unpack_from("=" + layout[0], data, 1)))

    def __getitem__(self, field: str) -> int:
        return self._fields[field]

    def get(self, field: str) -> int:
        """The field, or 0 when this kind of event has none of that name."""
        return self._fields.get(field, 0)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value}" for name, value in self._fields.items())
        return f"<{self.name}{' sent' if self.synthetic else ''} {fields}>"


class Subscription:
    """What ``Connection.subscribe`` gives; ``end()`` or leaving the ``with`` block stops the events."""

    def __init__(self, subscribers: List[Callable[[Event], None]], subscriber: Callable[[Event], None]) -> None:
        self._subscribers = subscribers
        self._subscriber = subscriber

    def end(self) -> None:
        if self._subscriber in self._subscribers:
            self._subscribers.remove(self._subscriber)

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *_: Any) -> None:
        self.end()
