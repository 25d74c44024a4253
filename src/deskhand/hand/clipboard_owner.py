"""Owning selections: the text is handed to whoever asks (ICCCM, section 2, Peer-to-Peer Communication by Means of
Selections).

As X keeps no copy, somebody must stay to answer. ``main`` is that process: it lives on after the one that put the text
there, with nothing inherited, and ends when another client takes the clipboard or the server goes.
"""

from __future__ import annotations

import os
import select
import struct
import sys
from typing import Callable, Dict, List, Optional, Tuple

from .errors import DeskhandError, RequestFailed
from .x11 import Connection, Event, core

#: Bytes of a text that go in one property; longer ones go in pieces (ICCCM, 2.7.2, INCR Properties).
PIECE = 1 << 18
#: Transfers under way at a time: one that a requestor never finishes must not pile up.
_MOST_TRANSFERS = 64
READY = b"owner\n"


class SelectionOwner:
    """Answers requests for ``text`` as long as it owns one of ``selections``; the connection's events drive it."""

    def __init__(self, conn: Connection, text: str, selections: Tuple[str, ...] = ("CLIPBOARD",)) -> None:
        self._conn = conn
        self._utf8 = text.encode("utf-8")
        #: Called for each request answered with text: the requestor's window and the selection.
        self.on_fetched: Callable[[int, int], None] = lambda requestor, selection: None
        atom = conn.atom
        self._targets = {
            atom("UTF8_STRING"): (atom("UTF8_STRING"), self._utf8),
            atom("text/plain;charset=utf-8"): (atom("text/plain;charset=utf-8"), self._utf8),
            atom("TEXT"): (atom("UTF8_STRING"), self._utf8),
        }
        try:
            latin = text.encode("latin-1")
        except UnicodeEncodeError:
            pass
        else:
            self._targets[core.ATOM_STRING] = (core.ATOM_STRING, latin)
            self._targets[atom("text/plain")] = (atom("text/plain"), latin)
        self._transfers: Dict[Tuple[int, int], Tuple[int, bytes, int]] = {}
        self._window = core.create_window(conn, event_mask=core.PROPERTY_CHANGE)
        self._time = core.server_time(conn)
        self._subscription = conn.subscribe(self._take)
        self.owned: List[int] = []
        for selection in conn.atoms(selections):
            core.set_selection_owner(conn, self._window, selection, self._time)
            if core.get_selection_owner(conn, selection) == self._window:
                self.owned.append(selection)

    @property
    def window(self) -> int:
        return self._window

    @property
    def finished(self) -> bool:
        """Nothing is owned any more and every transfer begun has ended."""
        return not self.owned and not self._transfers

    @property
    def busy(self) -> bool:
        """Whether a long text is being handed over."""
        return bool(self._transfers)

    def close(self) -> None:
        """Own nothing; a selection that is still ours becomes empty."""
        self._subscription.end()
        core.destroy_window(self._conn, self._window)
        self.owned.clear()

    def _take(self, event: Event) -> None:
        if event.name == "SelectionRequest" and event["owner"] == self._window:
            self._answer(event)
        elif event.name == "SelectionClear" and event["owner"] == self._window:
            self.owned = [selection for selection in self.owned if selection != event["selection"]]
        elif event.name == "PropertyNotify" and event["state"] == 1:  # deleted: the requestor wants the next piece
            self._go_on((event["window"], event["atom"]))
        elif event.name == "DestroyNotify":
            for key in [key for key in self._transfers if key[0] == event["window"]]:
                del self._transfers[key]

    def _answer(self, event: Event) -> None:
        requestor, target = event["requestor"], event["target"]
        # Clients older than ICCCM give no property and mean the target's name.
        prop = event["property"] or target
        if target == self._conn.atom("MULTIPLE"):
            done = self._convert_several(requestor, prop, event["selection"]) if event["property"] else False
        else:
            done = self._convert(requestor, target, prop, event["selection"])
        answer = struct.pack(
            "=BBHIIIII4x4x", 31, 0, 0, event["time"], requestor, event["selection"], target, prop if done else 0
        )
        core.send_event(self._conn, requestor, 0, answer)
        self._conn.flush()

    def _convert(self, requestor: int, target: int, prop: int, selection: int) -> bool:
        """Put what ``target`` names into the requestor's property; False when we have no such thing."""
        atom = self._conn.atom
        if target == atom("TARGETS"):
            offered = [target, atom("TIMESTAMP"), atom("MULTIPLE"), *self._targets]
            self._put(requestor, prop, core.ATOM_ATOM, 32, struct.pack(f"={len(offered)}I", *offered))
            return True
        if target == atom("TIMESTAMP"):
            self._put(requestor, prop, 19, 32, struct.pack("=I", self._time))  # 19: INTEGER
            return True
        if target not in self._targets:
            return False
        kind, value = self._targets[target]
        if len(value) <= PIECE:
            self._put(requestor, prop, kind, 8, value)
            self.on_fetched(requestor, selection)
            return True
        if len(self._transfers) >= _MOST_TRANSFERS:
            del self._transfers[next(iter(self._transfers))]
        core.select_input(self._conn, requestor, core.PROPERTY_CHANGE | core.STRUCTURE_NOTIFY)
        self._transfers[requestor, prop] = (kind, value, 0)
        self._put(requestor, prop, atom("INCR"), 32, struct.pack("=I", len(value)))
        self.on_fetched(requestor, selection)
        return True

    def _convert_several(self, requestor: int, prop: int, selection: int) -> bool:
        """MULTIPLE (ICCCM, 2.6.2): pairs of target and property; the targets we lack are crossed out."""
        try:
            pairs = core.get_property(self._conn, requestor, prop).cardinals()[:64]
        except RequestFailed:
            return False
        for index in range(0, len(pairs) - 1, 2):
            if not pairs[index + 1] or not self._convert(requestor, pairs[index], pairs[index + 1], selection):
                pairs[index] = 0
        value = struct.pack(f"={len(pairs)}I", *pairs)
        self._put(requestor, prop, self._conn.atom("ATOM_PAIR"), 32, value)
        return True

    def _go_on(self, key: Tuple[int, int]) -> None:
        if key not in self._transfers:
            return
        kind, value, at = self._transfers[key]
        piece = value[at : at + PIECE]
        self._put(*key, kind, 8, piece)
        self._conn.flush()
        if piece:
            self._transfers[key] = (kind, value, at + PIECE)
        else:  # the empty piece tells the requestor that this was all
            del self._transfers[key]
            core.select_input(self._conn, key[0], 0)

    def _put(self, requestor: int, prop: int, kind: int, bits: int, value: bytes) -> None:
        # A requestor that is gone by now is no error of ours.
        core.change_property(self._conn, requestor, prop, kind, bits, value, ignore=True)


def main(display: Optional[str] = None, xauthority: Optional[str] = None) -> int:
    """Own the clipboard of ``display`` with the text of standard input until somebody else takes it.

    Writes ``owner`` to standard output once it is ours, or one line that says why not. By then it is a process of its
    own: whoever started it has only to wait for the one that ends at once.
    """
    content = sys.stdin.buffer.read()
    if os.fork():
        # os._exit: the child has the same buffers and would write them a second time.
        os._exit(0)
    os.setsid()
    os.chdir("/")
    try:
        conn = Connection.open(display, xauthority)
        owner = SelectionOwner(conn, content.decode("utf-8", "surrogateescape"))
        if not owner.owned:
            raise DeskhandError("another client took the clipboard at the same time: try again")
    except (DeskhandError, ValueError) as error:
        os.write(1, f"{error}\n".encode())
        return 1
    os.write(1, READY)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 2)
    os.close(null)
    os.dup2(0, 1)  # last: the end of the pipe tells whoever started it that nothing is shared any more
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLIN)
    try:
        while not owner.finished:
            conn.read_pending()
            conn.flush()
            if owner.finished:
                break
            # No deadline: waiting for a request, however late, is what this process is for.
            poll.poll()
    except DeskhandError:
        pass  # the server went away, and the clipboard with it
    conn.close()
    return 0
