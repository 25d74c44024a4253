"""Where a server put its extensions, and the names of the requests, events and errors that follow from it."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional

_CORE_EVENTS = {
    2: "KeyPress", 3: "KeyRelease", 4: "ButtonPress", 5: "ButtonRelease", 6: "MotionNotify", 9: "FocusIn",
    10: "FocusOut", 12: "Expose", 15: "VisibilityNotify", 16: "CreateNotify", 17: "DestroyNotify", 18: "UnmapNotify",
    19: "MapNotify", 21: "ReparentNotify", 22: "ConfigureNotify", 24: "GravityNotify", 26: "CirculateNotify",
    28: "PropertyNotify", 29: "SelectionClear", 30: "SelectionRequest", 31: "SelectionNotify", 33: "ClientMessage",
    34: "MappingNotify",
}  # fmt: skip
_EVENTS = {
    "DAMAGE": ("Notify",),
    "XFIXES": ("SelectionNotify", "CursorNotify"),
    "RANDR": ("ScreenChangeNotify",),
}


class Extension(NamedTuple):
    """Where the server put an extension (X11 Protocol, QueryExtension)."""

    name: str
    major: int
    first_event: int
    first_error: int


class Extensions:
    """The extensions asked for so far; ``known`` holds None for those the server does not have."""

    def __init__(self) -> None:
        self.known: Dict[str, Optional[Extension]] = {}
        self._events = dict(_CORE_EVENTS)

    def add(self, name: str, found: Optional[Extension]) -> None:
        self.known[name] = found
        if found is not None:
            for offset, kind in enumerate(_EVENTS.get(name, ())):
                self._events[found.first_event + offset] = f"{name}.{kind}"

    def event_name(self, code: int) -> str:
        """``MapNotify``, ``DAMAGE.Notify``; ``event 99`` for those nobody here asks for."""
        return self._events.get(code, f"event {code}")

    def request_name(self, major: int, minor: int) -> str:
        """``GetGeometry``, ``MIT-SHM GetImage``."""
        from . import protocol  # only an error needs the names

        if major < 128:
            return protocol.REQUESTS[""].get(major, f"request {major}")
        for extension in self.known.values():
            if extension is not None and extension.major == major:
                return f"{extension.name} {protocol.REQUESTS.get(extension.name, {}).get(minor, minor)}"
        return f"request {major}.{minor}"

    def error_name(self, code: int) -> str:
        """``BadWindow``; ``error 199`` for one of an extension nobody here asked for."""
        from . import protocol

        if code < 128:
            return protocol.ERRORS[""].get(code, f"error {code}")
        owners = [e for e in self.known.values() if e is not None and 0 < e.first_error <= code]
        if owners:
            owner = max(owners, key=lambda e: e.first_error)
            name = protocol.ERRORS.get(owner.name, {}).get(code - owner.first_error)
            if name:
                return name
        return f"error {code}"
