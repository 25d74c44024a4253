"""Lines on the root window that say what a process has changed, so that a later one can put it right.

One JSON object a line; each names a window of its owner, which the server destroys with the owner's connection,
whatever ended it. That tells the living from the dead also across containers, where pids mean nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any, Dict, Iterator, List, Optional

from .errors import DeskhandError, RequestFailed
from .x11 import Connection, core

Line = Dict[str, Any]


class OwnedProperty:
    """Our line in the root property ``name``, and those of others."""

    def __init__(self, conn: Connection, name: str) -> None:
        self._conn = conn
        self._property, self._mark = conn.atoms([name, "_DESKHAND_OWNER"])
        self._window = 0
        self._nonce = f"{os.getpid()}.{time.monotonic_ns()}"

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """No other client can do anything inside; the server ends the grab with the connection at the latest."""
        core.grab_server(self._conn)
        try:
            yield
        finally:
            with contextlib.suppress(DeskhandError):
                core.ungrab_server(self._conn)
                self._conn.flush()

    def write(self, line: Optional[Line]) -> None:
        """Replace our line (None: take it away). Inside ``exclusive``."""
        if not self._window:
            if line is None:
                return
            self._window = core.create_window(self._conn, input_only=True)
            core.change_property(self._conn, self._window, self._mark, core.ATOM_STRING, 8, self._nonce.encode())
        # Not by the window: the server gives a dead client's ids to the next one.
        others = [other for other in self._read() if other.get("nonce") != self._nonce]
        ours = [] if line is None else [{"owner": self._window, "nonce": self._nonce, **line}]
        self._store(others + ours)

    def take_dead(self) -> List[Line]:
        """The lines of owners that are gone, taken away. Inside ``exclusive``."""
        lines = self._read()
        dead = [line for line in lines if not self._lives(line)]
        if dead:
            self._store([line for line in lines if line not in dead])
        return dead

    def others(self) -> List[Line]:
        """The lines of other living owners. Inside ``exclusive``."""
        return [line for line in self._read() if line.get("nonce") != self._nonce and self._lives(line)]

    def forget(self) -> None:
        """Give up the window that stands for us."""
        if self._window:
            core.destroy_window(self._conn, self._window)
            self._window = 0

    def _read(self) -> List[Line]:
        value = core.get_property(self._conn, self._conn.root, self._property).value
        lines: List[Line] = []
        for text in value.decode("utf-8", "replace").splitlines():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue  # anybody may write on the root window
            if isinstance(line, dict):
                lines.append(line)
        return lines

    def _store(self, lines: List[Line]) -> None:
        if not lines:
            core.delete_property(self._conn, self._conn.root, self._property)
            return
        value = "\n".join(json.dumps(line) for line in lines).encode()
        core.change_property(self._conn, self._conn.root, self._property, self._conn.atom("UTF8_STRING"), 8, value)

    def _lives(self, line: Line) -> bool:
        owner = line.get("owner")
        if not isinstance(owner, int) or not 0 < owner < 1 << 32:
            return False
        try:
            mark = core.get_property(self._conn, owner, self._mark)
        except RequestFailed:
            return False
        return mark.value.decode("latin-1") == line.get("nonce")
