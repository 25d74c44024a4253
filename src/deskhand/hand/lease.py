"""Whose turn it is at a desktop: one session has the lease, others are refused with its name, or queue.

Each session has a line in the root property ``_DESKHAND_LEASE`` (see ``owned_property``)::

    {"owner": window, "nonce": "...", "holder": "name", "since": s, "held": true|false, "until": s}

A line counts while its owner's window exists, and one that holds the desktop only ``until`` then: a session that hangs,
or that nobody uses, does not keep others out for ever. Lines with ``held`` false wait, in the order of ``since``. Times
are seconds of CLOCK_BOOTTIME, one clock for the whole machine.

A lease keeps well-meaning sessions apart. It is no wall: any client of the display may still send input.
"""

from __future__ import annotations

import math
import time
from typing import Any, List, Optional

from .errors import DesktopInUse, DisplayLost
from .owned_property import Line, OwnedProperty
from .x11 import Connection, core
from .x11.events import Event

_PROPERTY_CHANGE, _STRUCTURE_NOTIFY = 1 << 22, 1 << 17
#: Seconds a lease may run at most: what stands on the root window may be anybody's.
LONGEST = 24 * 3600.0


class Lease:
    """The turn of ``holder`` at the display of ``conn``, which should be used for nothing else: it is waited on."""

    def __init__(self, conn: Connection, holder: str) -> None:
        self._conn = conn
        self.holder = holder
        self._lines = _Lines(conn, "_DESKHAND_LEASE")
        self._since: Optional[float] = None

    def take(self, seconds: float, wait: float = 0.0) -> None:
        """Take the desktop for ``seconds``, or keep it for so long from now; queue for it ``wait`` seconds at most.

        Raises:
            DesktopInUse: Another session has it, and still has it after ``wait`` seconds.
            DisplayLost: The display went away, or the wait was cut short.
        """
        deadline = time.monotonic() + wait
        changed = True

        def note(event: Event) -> None:
            nonlocal changed
            changed = True

        with self._conn.subscribe(note):
            while True:
                before = self._try(seconds, queue=wait > 0)
                if before is None:
                    return
                left = deadline - time.monotonic()
                if left <= 0:
                    self._withdraw()
                    raise DesktopInUse(_refusal(before, wait), holder=str(before.get("holder", "")))
                changed = False
                # The property is read anew after its watch is set, so that no change falls between.
                self._watch(before)
                if self._try_changed(before):
                    continue
                self._conn.wait(lambda: changed, min(left, self._expiry(before)))

    def release(self) -> None:
        """Let the next one have it."""
        if self._conn.closed:
            return
        self._withdraw()
        self._lines.forget()
        self._conn.sync()

    def _try(self, seconds: float, queue: bool) -> Optional[Line]:
        """Take it when it is our turn (None), else queue when asked to and give the line of who is before us."""
        with self._lines.exclusive():
            self._lines.take_dead()
            now = _now()
            if self._since is None:
                self._since = now
            before = [line for line in self._lines.others() if self._is_before(line, now)]
            if before:
                if queue:
                    self._lines.write(self._line(False, now))
                return min(before, key=lambda line: (not line.get("held"), _time(line, "since")))
            self._lines.write(self._line(True, now + min(seconds, LONGEST)))
        self._conn.sync()
        return None

    def _is_before(self, line: Line, now: float) -> bool:
        if line.get("held") is True:
            return 0 < _time(line, "until") - now <= LONGEST
        return line.get("held") is False and self._since is not None and _time(line, "since") < self._since

    def _line(self, held: bool, until: float) -> Line:
        return {"holder": self.holder, "since": self._since, "held": held, "until": until}

    def _withdraw(self) -> None:
        with self._lines.exclusive():
            self._lines.write(None)
        self._since = None

    def _watch(self, line: Line) -> None:
        """Be told when the property changes and when the owner of ``line`` goes away."""
        core.select_input(self._conn, self._conn.root, _PROPERTY_CHANGE)
        core.select_input(self._conn, int(line["owner"]), _STRUCTURE_NOTIFY)
        self._conn.sync()

    def _try_changed(self, line: Line) -> bool:
        with self._lines.exclusive():
            return line not in self._lines.others()

    @staticmethod
    def _expiry(line: Line) -> float:
        return max(0.0, _time(line, "until") - _now()) if line.get("held") else math.inf


def holder_of(conn: Connection) -> Optional[str]:
    """The name of the session that has the desktop now; None when none has."""
    lines = _Lines(conn, "_DESKHAND_LEASE")
    now = _now()
    with lines.exclusive():
        held = [line for line in lines.others() if line.get("held") is True and 0 < _time(line, "until") - now <= LONGEST]
    return str(held[0].get("holder", "")) if held else None


class _Lines(OwnedProperty):
    def others(self) -> List[Line]:
        """The lines of other living owners. Inside ``exclusive``."""
        return [line for line in self._read() if line.get("nonce") != self._nonce and self._lives(line)]


def _time(line: Line, name: str) -> float:
    value: Any = line.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.inf


def _refusal(line: Line, waited: float) -> str:
    name = str(line.get("holder", ""))[:100]
    how = f", still after {waited:g} s" if waited else ""
    return f"the desktop is in use by session {name!r}{how}: wait until it ends, queue for it, or use another desktop"


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
