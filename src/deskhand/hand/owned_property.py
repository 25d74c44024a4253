"""Lines on the root window that say what a process has changed, so that a later one can put it right.

One JSON object a line; each names a window of its owner, which the server destroys with the owner's connection,
whatever ended it. That tells the living from the dead also across containers, where pids mean nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

from .errors import DeskhandError, RequestFailed
from .x11 import Connection, core

Line = Dict[str, Any]


class OwnedProperty:
    """Our lines in the root property ``name``, and those of others.

    Anybody may write on the root window: a line that ``is_line`` denies is passed over, and goes with the next write.
    """

    def __init__(self, conn: Connection, name: str, is_line: Callable[[Line], bool] = lambda line: True) -> None:
        self._conn = conn
        self._is_line = is_line
        self._property, self._mark = conn.atoms([name, "_DESKHAND_OWNER"])
        self._window = 0
        self._nonce = f"{os.getpid()}.{time.monotonic_ns()}"
        #: All lines, inside ``exclusive`` once they have been read: nobody else can change them there.
        self._known: Optional[List[Line]] = None
        self._inside = False

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """No other client can do anything inside; the server ends the grab with the connection at the latest."""
        core.grab_server(self._conn)
        self._inside = True
        try:
            yield
        finally:
            self._inside, self._known = False, None
            with contextlib.suppress(DeskhandError):
                core.ungrab_server(self._conn)
                self._conn.flush()

    def write(self, *lines: Line) -> None:
        """Replace our lines; with none, take them away. Inside ``exclusive``."""
        if lines and not self._window:
            self._window = core.create_window(self._conn, input_only=True)
            core.change_property(self._conn, self._window, self._mark, core.ATOM_STRING, 8, self._nonce.encode())
        # Not by the window: the server gives a dead client's ids to the next one.
        others = [other for other in self.read() if not self.is_ours(other)]
        self.store(others + [{"owner": self._window, "nonce": self._nonce, **line} for line in lines])

    def take_dead(self) -> List[Line]:
        """The lines of owners that are gone, taken away. Inside ``exclusive``."""
        lines = self.read()
        dead = [line for line in lines if not self.lives(line)]
        if dead:
            self.store([line for line in lines if line not in dead])
        return dead

    def is_ours(self, line: Line) -> bool:
        return line.get("nonce") == self._nonce

    def others(self) -> List[Line]:
        """The lines of other living owners. Inside ``exclusive``."""
        return [line for line in self.read() if not self.is_ours(line) and self.lives(line)]

    def end_own_connection(self, conn: Connection) -> None:
        """Over another connection, have the server end ours, if it has not noticed yet that it is closed."""
        if self._window and self.lives({"owner": self._window, "nonce": self._nonce}, conn):
            core.kill_client(conn, self._window)
            conn.sync()

    def forget(self) -> None:
        """Give up the window that stands for us."""
        if self._window:
            core.destroy_window(self._conn, self._window)
            self._window = 0

    def read(self) -> List[Line]:
        """All lines, those of the dead too. Inside ``exclusive``, or only to see whether there is anything to do."""
        if self._known is not None:
            return list(self._known)
        value = core.get_property(self._conn, self._conn.root, self._property).value
        lines: List[Line] = []
        for text in value.decode("utf-8", "replace").splitlines():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict) and self._is_line(line):
                lines.append(line)
        if self._inside:
            self._known = list(lines)
        return lines

    def store(self, lines: List[Line]) -> None:
        """Put these in the place of all lines. Inside ``exclusive``."""
        self._known = list(lines)
        if not lines:
            core.delete_property(self._conn, self._conn.root, self._property)
            return
        value = "\n".join(json.dumps(line) for line in lines).encode()
        core.change_property(self._conn, self._conn.root, self._property, self._conn.atom("UTF8_STRING"), 8, value)

    def lives(self, line: Line, conn: Optional[Connection] = None) -> bool:
        """Whether the owner of ``line`` still has its connection; asked over ``conn``, else over ours."""
        owner = line.get("owner")
        if not isinstance(owner, int) or not 0 < owner < 1 << 32:
            return False
        try:
            mark = core.get_property(conn or self._conn, owner, self._mark)
        except RequestFailed:
            return False
        return mark.value.decode("latin-1") == line.get("nonce")
