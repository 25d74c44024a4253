"""Whose turn it is at the keyboard: processes of ours on one display type one after the other.

A text is exact only while nobody else lends keycodes or holds Shift, and two that paste at once would paste each
other's text. Each process at work has a line in the root property ``_DESKHAND_KEYBOARD`` (see ``owned_property``), so a
process that dies gives its turn back. It keeps our own processes apart, and nobody else.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Iterator, List

from .errors import ActionFailed, nothing_sent
from .owned_property import Line, OwnedProperty
from .x11 import Connection, core
from .x11.events import Event

#: Seconds to wait for another process's turn to end.
PATIENCE = 20.0


class KeyboardTurn:
    """Our turns at the keyboard of one display."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._lines = OwnedProperty(conn, "_DESKHAND_KEYBOARD")
        self._depth = 0

    @contextlib.contextmanager
    def taken(self, patience: float = PATIENCE) -> Iterator[None]:
        """No other process of ours uses the keyboard inside. One turn may stand inside another.

        Raises:
            ActionFailed: on entering, when another one still has it after ``patience`` seconds; nothing was sent.
        """
        if not self._depth:
            self._take(patience)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth and not self._conn.closed:
                with self._lines.exclusive():
                    self._lines.write()

    def _take(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        news: List[Event] = []
        with self._conn.subscribe(news.append):
            while True:
                news.clear()
                with self._lines.exclusive():
                    self._lines.take_dead()
                    before = self._lines.others()
                    if not before:
                        self._lines.write({"pid": os.getpid()})
                        return
                    # Inside, so that no change falls between the look and the watch.
                    core.select_input(self._conn, int(before[0]["owner"]), core.STRUCTURE_NOTIFY)
                left = deadline - time.monotonic()  # looked at here too: there may be news without end
                if left <= 0 or not self._conn.wait(lambda: news, left):
                    raise _refused(before[0], patience)


def _refused(line: Line, patience: float) -> ActionFailed:
    who = line.get("pid")
    return nothing_sent(
        f"another process of deskhand{f' (pid {who})' if isinstance(who, int) else ''} has been using the keyboard of"
        f" this display for {patience:g} s: try again when it has ended"
    )
