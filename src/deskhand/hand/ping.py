"""Has a window's client handled everything sent to it so far? (EWMH, _NET_WM_PING)

Events reach a client in order, so a client that answers a ping has read every event sent before it: input, and the
MappingNotify of a changed keymap. GTK, Qt, Firefox and Chromium answer; xterm and Tk do not.
"""

from __future__ import annotations

import os
import time
from typing import Dict, List, Optional, Set, Tuple

from .errors import RequestFailed
from .x11 import Connection, Event, core

#: What must be selected on the root window for answers to arrive: Qt sends its answer with a mask that only
#: StructureNotify receives, the others with SubstructureNotify.
ROOT_EVENTS = core.STRUCTURE_NOTIFY | core.SUBSTRUCTURE_NOTIFY | core.PROPERTY_CHANGE
#: Seconds a client may take before it counts as one that does not answer. The slowest answer measured took 0.32 s.
PATIENCE = 1.0
#: Seconds for which an answer tells how fast clients are now: one slow start must not slow down all that comes after.
RECENT = 10.0


class Pings:
    """Sends pings over one connection and keeps what came back."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._stamp = int.from_bytes(os.urandom(4), "little") >> 2
        self._waiting: Dict[Tuple[int, int], float] = {}
        self._answers: Dict[Tuple[int, int], float] = {}
        self._silent: Set[int] = set()
        self._taken: List[Tuple[float, float]] = []  # when an answer came, and the seconds it took
        self._protocols, self._ping = conn.atoms(["WM_PROTOCOLS", "_NET_WM_PING"])
        core.select_input(conn, conn.root, ROOT_EVENTS)
        conn.subscribe(self._take)

    @property
    def slowest(self) -> float:
        """The longest answer time of late, in seconds: how fast clients are under the load there is. 0: not known."""
        since = time.monotonic() - RECENT
        return max((took for at, took in self._taken if at >= since), default=0.0)

    def target(self, window: int) -> Optional[int]:
        """The nearest of ``window`` and its ancestors that takes part in _NET_WM_PING; None when there is none.

        A window that let a ping time out before counts as one that does not.
        """
        seen = 0
        while window not in (0, 1, self._conn.root) and seen < 32:
            seen += 1
            try:
                protocols = core.get_property(self._conn, window, self._protocols, core.ATOM_ATOM).cardinals()
                if self._ping in protocols:
                    return None if window in self._silent else window
                window = core.query_tree(self._conn, window)[1]
            except RequestFailed:
                return None
        return None

    def send(self, window: int) -> Tuple[int, int]:
        """Ping ``window`` (one that ``target`` gave); the answer is awaited with ``answered``."""
        self._stamp = self._stamp + 1 & 0x7FFFFFFF
        key = (window, self._stamp)
        self._waiting[key] = time.monotonic()
        core.select_input(self._conn, window, core.WINDOW_EVENTS)
        core.send_client_message(self._conn, window, 0, window, self._protocols, [self._ping, self._stamp, window])
        try:
            core.get_geometry(self._conn, window)
        except RequestFailed:  # gone before its events were selected: no DestroyNotify will tell
            if self._waiting.pop(key, None) is not None:
                self._answers[key] = 0.0
        return key

    def answered(self, ping: Tuple[int, int]) -> Optional[float]:
        """Seconds the answer took, or None while it has not come."""
        return self._answers.get(ping)

    def barrier(self, window: int, timeout: float = PATIENCE) -> Optional[float]:
        """Ping and wait. Seconds the answer took; None when it did not come, and the window counts as silent then."""
        ping = self.send(window)
        if not self._conn.wait(lambda: ping in self._answers, timeout):
            self.give_up(ping)
            return None
        return self._answers.pop(ping)

    def give_up(self, ping: Tuple[int, int]) -> None:
        """The answer did not come in time: do not ask this window again."""
        self._waiting.pop(ping, None)
        self._silent.add(ping[0])

    def _take(self, event: Event) -> None:
        if event.name == "DestroyNotify":
            # A window that is gone has handled what it will ever handle: a dialog closed by the key it was sent.
            for key in [key for key in self._waiting if key[0] == event["window"]]:
                self._answers[key] = time.monotonic() - self._waiting.pop(key)
            return
        if event.name != "ClientMessage" or event["window"] != self._conn.root:
            return
        if event["type"] != self._protocols or event["data0"] != self._ping:
            return
        key = (event["data2"], event["data1"])
        sent = self._waiting.pop(key, None)
        if sent is not None:
            now = time.monotonic()
            self._answers[key] = now - sent
            self._taken = [(at, took) for at, took in self._taken[-64:] if at >= now - RECENT] + [(now, now - sent)]
            self._forget_old()

    def _forget_old(self) -> None:
        keys: List[Tuple[int, int]] = list(self._answers)
        for key in keys[:-64]:
            del self._answers[key]
