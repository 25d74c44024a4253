"""Whose turn it is at a desktop: one session has the lease, others are refused with its name, or queue.

Each session has a line in the root property ``_DESKHAND_LEASE`` (see ``owned_property``)::

    {"owner": window, "nonce": "...", "holder": "name", "since": s, "held": true|false, "until": s}

A line counts while its owner's window exists, and only ``until`` then: a session that hangs, or that nobody uses, does
not keep others out for ever. Lines with ``held`` false wait, in the order of ``since``. Times are seconds of
CLOCK_BOOTTIME, one clock for the whole machine.

A lease keeps well-meaning sessions apart. It is no wall: any client of the display may still send input.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any, Optional

from . import state
from .errors import DesktopInUse
from .owned_property import Line, OwnedProperty
from .x11 import Connection, core
from .x11.connection import DEFAULT_TIMEOUT
from .x11.events import Event

_PROPERTY_CHANGE, _STRUCTURE_NOTIFY = 1 << 22, 1 << 17
#: Seconds a lease may run at most: what stands on the root window may be anybody's.
LONGEST = 24 * 3600.0


class Lease:
    """The turn of ``holder`` at the display of ``conn``, which should be used for nothing else: it is waited on."""

    def __init__(self, conn: Connection, holder: str) -> None:
        self._conn = conn
        self.holder = holder
        self._lines = OwnedProperty(conn, "_DESKHAND_LEASE")
        self._since: Optional[float] = None

    @property
    def lost(self) -> bool:
        """Whether the connection, and the lease with it, is gone."""
        return self._conn.closed

    def take(self, seconds: float, wait: float = 0.0) -> None:
        """Take the desktop for ``seconds``, or keep it for so long from now; queue for it ``wait`` seconds at most.

        Raises:
            DesktopInUse: Another session has it, and still has it after ``wait`` seconds.
            DisplayLost: The display went away, or the wait was cut short.
        """
        deadline = time.monotonic() + wait
        changed = False

        def note(event: Event) -> None:
            nonlocal changed
            changed = True

        def woken() -> bool:
            return changed

        with self._conn.subscribe(note):
            while True:
                left = max(0.0, deadline - time.monotonic())
                before = self._try(seconds, left)
                if before is None:
                    return
                if not left:
                    self._withdraw()
                    raise DesktopInUse(_refusal(before, wait), holder=_name(before))
                changed = False
                self._watch(before)
                if self._stands(before):  # looked at after the watch is set, so that no change falls between
                    self._conn.wait(woken, min(left, max(0.0, _time(before, "until") - _now())))

    def release(self) -> None:
        """Let the next one have it, and end the connection."""
        try:
            if not self._conn.closed:
                self._withdraw()
                self._conn.sync()
        finally:
            self._conn.close()

    def cut(self) -> None:
        """End the connection now, from any thread: a wait in ``take`` ends with ``DisplayLost``."""
        self._conn.cut()

    def _try(self, seconds: float, left: float) -> Optional[Line]:
        """Take it when it is our turn (None), else queue for ``left`` seconds and give the line of who is before us."""
        with self._lines.exclusive():
            self._lines.take_dead()
            now = _now()
            if self._since is None:
                self._since = now
            before = [line for line in self._lines.others() if self._is_before(line, now)]
            if not before:
                self._lines.write(self._line(True, now + min(seconds, LONGEST)))
            elif left:
                self._lines.write(self._line(False, now + min(left, LONGEST)))
        self._conn.sync()
        return min(before, key=lambda line: (not line["held"], _time(line, "since"))) if before else None

    def _is_before(self, line: Line, now: float) -> bool:
        if not _counts(line, now):
            return False
        return bool(line["held"]) or (self._since is not None and _time(line, "since") < self._since)

    def _line(self, held: bool, until: float) -> Line:
        return {"holder": self.holder, "since": self._since, "held": held, "until": until}

    def _withdraw(self) -> None:
        with self._lines.exclusive():
            self._lines.write()
        self._since = None

    def _watch(self, line: Line) -> None:
        """Be told when the property changes, and when the owner of ``line`` goes away."""
        core.select_input(self._conn, self._conn.root, _PROPERTY_CHANGE)
        core.select_input(self._conn, int(line["owner"]), _STRUCTURE_NOTIFY)
        self._conn.sync()

    def _stands(self, line: Line) -> bool:
        with self._lines.exclusive():
            return line in self._lines.others()


def open_lease(display: Optional[str], xauthority: Optional[str], holder: str) -> Lease:
    """A lease of ``holder`` at ``display`` (None: DISPLAY), not taken yet, over a connection of its own.

    ``xauthority`` None: as for ``Display``. The connection ends with ``Lease.release``.

    Raises:
        NoDisplay, DisplayTimeout: The display can not be reached.
    """
    name = display or os.environ.get("DISPLAY") or None
    if xauthority is None and name is not None:
        desktop = state.find_desktop(name)
        xauthority = str(desktop["xauthority"]) if desktop is not None else None
    conn = Connection.open(name, xauthority, DEFAULT_TIMEOUT)
    try:
        return Lease(conn, holder)
    except BaseException:
        conn.close()
        raise


def holder_of(conn: Connection) -> Optional[str]:
    """The name of the session that has the desktop now; None when none has."""
    lines = OwnedProperty(conn, "_DESKHAND_LEASE")
    now = _now()
    with lines.exclusive():
        held = [line for line in lines.others() if _counts(line, now) and line["held"]]
    return _name(held[0]) if held else None


def _counts(line: Line, now: float) -> bool:
    """Whether a line is one of ours and its time is not over: anybody may write on the root window."""
    return line.get("held") in (True, False) and 0 < _time(line, "until") - now <= LONGEST


def _time(line: Line, name: str) -> float:
    value: Any = line.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.inf


def _name(line: Line) -> str:
    return "".join(one if one.isprintable() else " " for one in str(line.get("holder", "")))[:100]


def _refusal(line: Line, waited: float) -> str:
    still = f", still after {waited:g} s" if waited else ""
    return f"the desktop is in use by session {_name(line)!r}{still}: wait until it has ended, or use another desktop"


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
