"""Proofs that each part of a desktop is up, all from its own X server; every wait ends (EWMH; X11 Protocol)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..hand.errors import RequestFailed
from ..hand.x11 import Connection, Event, core, damage
from .sessions import Session

#: Seconds without drawing after which a started desktop counts as painted.
QUIET = 0.3
#: Seconds it may go on drawing (a clock with seconds, say) before it counts as painted all the same.
MOST_DRAWING = 5.0
_OWN_WINDOWS = {"DESKTOP": "the desktop's own window", "DOCK": "the panel"}


class Readiness:
    """The proofs for one display.

    ``look`` is called whenever one of ``fds`` can be read, and raises when a process that must live has ended.
    Each proof gives true, or false when ``timeout`` seconds pass first.
    """

    def __init__(self, connection: Connection, look: Callable[[], None], fds: Sequence[int] = ()) -> None:
        self._connection = connection
        self._look = look
        self._fds = fds
        core.select_input(connection, connection.root, core.SUBSTRUCTURE_NOTIFY | core.PROPERTY_CHANGE)

    def missing_of(self, session: Session, left: Callable[[], float]) -> str:
        """Prove a whole session while ``left()`` seconds are left; gives what is missing, ``""`` when nothing."""
        if not self.window_manager(left()):
            return "no window manager owned _NET_SUPPORTING_WM_CHECK"
        if not session.own_windows and not self.window_of_ours(left()):
            return "a window of ours was not seen on the screen"
        for kind in session.own_windows:
            if not self.windows_of_type(kind, left()):
                return f"{_OWN_WINDOWS[kind]} was not mapped"
        if session.paints and not self.painted(left()):
            return "the screen stayed of one colour"
        return ""

    def window_manager(self, timeout: float) -> bool:
        """A window manager owns ``_NET_SUPPORTING_WM_CHECK``: root names a window that names itself (EWMH)."""
        return self._wait(lambda: supporting_window(self._connection) != 0, timeout)

    def windows_of_type(self, kind: str, timeout: float) -> bool:
        """A window of the type ``_NET_WM_WINDOW_TYPE_<kind>`` is viewable."""
        atom = self._connection.atom(f"_NET_WM_WINDOW_TYPE_{kind}")
        return self._wait(lambda: self._has_window(atom), timeout)

    def painted(self, timeout: float) -> bool:
        """The screen is not of one colour, and nothing was drawn for a moment."""
        connection = self._connection
        drawn: list[Event] = []
        if not damage.available(connection):
            return self._wait(self._not_one_colour, timeout)
        report = damage.create(connection, connection.root, damage.RAW_RECTANGLES)
        try:
            with connection.subscribe(lambda event: drawn.append(event) if event.name == "DAMAGE.Notify" else None):
                if not self._wait(self._not_one_colour, timeout):
                    return False
                enough = time.monotonic() + MOST_DRAWING
                while time.monotonic() < enough:
                    drawn.clear()
                    if not self._wait(lambda: bool(drawn), QUIET):
                        break
        finally:
            damage.destroy(connection, report)
        return self._not_one_colour()

    def window_of_ours(self, timeout: float) -> bool:
        """A window that we map becomes viewable under the window manager, and its colour is seen on the screen.

        For a window manager that draws nothing of its own, whose empty screen proves nothing.
        """
        connection = self._connection
        colour = (1 << connection.screen.root_depth) - 1  # white, on TrueColor
        window = core.create_window(
            connection, 0, 0, 64, 48, override_redirect=False, background=colour, event_mask=core.STRUCTURE_NOTIFY
        )
        core.change_property(
            connection, window, core.ATOM_WM_NAME, core.ATOM_STRING, 8, b"Deskhand looks whether a window can be seen"
        )
        enough = time.monotonic() + timeout
        try:
            while True:
                # Asked again, because openbox drops the requests that come while it starts, after it has set
                # _NET_SUPPORTING_WM_CHECK, and says nothing when it has started.
                core.map_window(connection, window)
                left = enough - time.monotonic()
                if self._wait(lambda: self._is_seen(window, colour), min(0.2, left)):
                    return True
                if left <= 0:
                    return False
        finally:
            # The server gives our ids to its next client: a window manager that still had to let go of this window
            # would unmap that client's first one.
            core.unmap_window(connection, window)
            self._wait(lambda: self._is_let_go(window), min(2.0, timeout))
            core.destroy_window(connection, window)
            connection.sync()

    def _is_let_go(self, window: int) -> bool:
        """The window manager has withdrawn it (ICCCM 4.1.4): back at the root, and without WM_STATE or in state 0."""
        connection = self._connection
        if core.query_tree(connection, window)[1] != connection.root:
            return False
        return core.get_property(connection, window, connection.atom("WM_STATE")).cardinals()[:1] in ([], [0])

    def _wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        def met() -> bool:
            self._look()
            try:
                return condition()
            except RequestFailed:
                return False  # a window went away between two requests

        return self._connection.wait(met, timeout, self._fds)

    def _has_window(self, kind: int) -> bool:
        connection = self._connection
        listed = core.get_property(connection, connection.root, connection.atom("_NET_CLIENT_LIST")).cardinals()
        for window in listed:
            types = core.get_property(connection, window, connection.atom("_NET_WM_WINDOW_TYPE")).cardinals()
            attributes = core.get_window_attributes(connection, window)
            if kind in types and attributes.map_state == core.MAP_STATE_VIEWABLE:
                return True
        return False

    def _not_one_colour(self) -> bool:
        geometry = core.get_geometry(self._connection, self._connection.root)
        pixels = core.get_image(self._connection, self._connection.root, 0, 0, geometry.width, geometry.height).data
        first = pixels[:4]
        return pixels != first * (len(pixels) // 4)

    def _is_seen(self, window: int, colour: int) -> bool:
        connection = self._connection
        if core.get_window_attributes(connection, window).map_state != core.MAP_STATE_VIEWABLE:
            return False
        geometry = core.get_geometry(connection, window)
        _child, x, y = core.translate_coordinates(
            connection, window, connection.root, geometry.width // 2, geometry.height // 2
        )
        pixel = core.get_image(connection, connection.root, x, y, 1, 1).data
        return int.from_bytes(pixel, "little") & colour == colour


def supporting_window(connection: Connection) -> int:
    """The window manager's window (EWMH, _NET_SUPPORTING_WM_CHECK); 0 when none stands behind the property."""
    name = connection.atom("_NET_SUPPORTING_WM_CHECK")
    try:
        for window in core.get_property(connection, connection.root, name).cardinals()[:1]:
            if core.get_property(connection, window, name).cardinals()[:1] == [window]:
                return window
    except RequestFailed:
        pass  # the property was left by a window manager that has gone
    return 0
