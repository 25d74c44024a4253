"""The ledger of held input: what we have pressed and not released, written on the root window before the press.

A process that dies half-way (``kill -9``) leaves its entries there; the next process of ours on that display releases
them. Entries live in the root property ``_DESKHAND_HELD``, one JSON object a line::

    {"owner": window, "session": "name", "pid": 4242, "start": 917, "kind": "key"|"button", "code": 38, "until": null|s}

An owner is alive as long as the window it names exists and carries its mark: the server destroys the window with the
connection, whatever ended it, also across containers where pids mean nothing. ``until`` (seconds of CLOCK_BOOTTIME, one
clock for the whole machine) is set when a named session ended cleanly and keeps what ``key_down`` and ``mouse_down``
pressed for its next call.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from .errors import DeskhandError, RequestFailed
from .state import process_start_time
from .x11 import Connection, core, xtest

KEY, BUTTON = "key", "button"
#: Seconds that what a named session left down at a clean exit stays down.
KEEP_SECONDS = 60.0

Entry = Dict[str, Any]


class Ledger:
    """What this process holds down on one display; ``session`` is the name that may take it up again later."""

    def __init__(self, conn: Connection, session: Optional[str] = None) -> None:
        self._conn = conn
        self.session = session
        self._property, self._mark = conn.atoms(["_DESKHAND_HELD", "_DESKHAND_OWNER"])
        self._window = core.create_window(conn, input_only=True)
        self._nonce = f"{os.getpid()}.{time.monotonic_ns()}"
        core.change_property(conn, self._window, self._mark, core.ATOM_STRING, 8, self._nonce.encode())
        self._start = process_start_time(os.getpid())
        self._mine: List[Tuple[str, int]] = []
        #: What was found pressed by processes that are gone, and released: ``[("key", 38), ...]``.
        self.released_at_start: List[Tuple[str, int]] = []
        self._take_over()

    @property
    def held(self) -> List[Tuple[str, int]]:
        """What is down by our doing, in the order of the presses."""
        return list(self._mine)

    def take_released_at_start(self) -> List[str]:
        """What ``released_at_start`` holds, in words, once: the first answer of a process tells it."""
        found, self.released_at_start = self.released_at_start, []
        return [f"{kind} {code}" for kind, code in found]

    def hold(self, kind: str, code: int) -> None:
        """Note that ``code`` is about to be pressed. Call it before the press."""
        self.hold_all([(kind, code)])

    def hold_all(self, codes: Iterable[Tuple[str, int]]) -> None:
        """Note several at once: one write for a whole text."""
        new = [item for item in codes if item not in self._mine]
        if new:
            self._mine += new
            self._write()

    def drop(self, kind: str, code: int) -> None:
        """Note that ``code`` has been released. Call it after the release."""
        self.drop_all([(kind, code)])

    def drop_all(self, codes: Iterable[Tuple[str, int]]) -> None:
        gone = set(codes)
        if gone.intersection(self._mine):
            self._mine = [item for item in self._mine if item not in gone]
            self._write()

    @contextlib.contextmanager
    def covering(self, codes: Iterable[Tuple[str, int]]) -> Iterator[None]:
        """Everything in ``codes`` may be pressed inside; it is released at the end, whether or not the body did so."""
        new = [item for item in dict.fromkeys(codes) if item not in self._mine]
        self.hold_all(new)
        try:
            yield
        finally:
            self.release(new)

    def release(self, codes: Iterable[Tuple[str, int]]) -> List[Tuple[str, int]]:
        """Release ``codes``, last pressed first; gives those that were seen to be down."""
        wanted = [item for item in reversed(self._mine) if item in set(codes)]
        released = _release(self._conn, wanted)
        self.drop_all(wanted)
        return released

    def release_all(self) -> List[Tuple[str, int]]:
        """Release everything we hold."""
        return self.release(self.held)

    def leave(self, keep: bool = True) -> None:
        """The process ends cleanly: a named session keeps what it holds for a minute, everything else is released."""
        if self._conn.closed:
            return
        if not (keep and self.session):
            self.release_all()
        self._write(until=_now() + KEEP_SECONDS if self._mine else None)

    def disown(self, conn: Connection) -> None:
        """Have the server end our own connection, which is closed on this side, so that the next ledger takes over.

        ``conn`` is another connection: the server may not have noticed yet.
        """
        if self._owner_lives({"owner": self._window, "nonce": self._nonce}, conn):
            core.kill_client(conn, self._window)
            conn.sync()

    # -- the property -----------------------------------------------------------------------------------------------

    def _take_over(self) -> None:
        """Release what dead processes left, and take up what our own session kept."""
        with self._exclusive() as entries:
            alive: List[Entry] = []
            dead: List[Entry] = []
            for entry in entries:
                if entry.get("until") is None:
                    (alive if self._owner_lives(entry) else dead).append(entry)
                elif not 0 <= entry["until"] - _now() <= KEEP_SECONDS:
                    dead.append(entry)
                elif self.session and entry.get("session") == self.session:
                    self._mine.append((entry["kind"], entry["code"]))
                else:
                    alive.append(entry)
            if dead or self._mine:
                others = {(e["kind"], e["code"]) for e in alive} | set(self._mine)
                orphans = [(e["kind"], e["code"]) for e in reversed(dead)]
                self.released_at_start = _release(self._conn, [o for o in orphans if o not in others])
                self._store(alive + [self._entry(kind, code, None) for kind, code in self._mine])

    def _write(self, until: Optional[float] = None) -> None:
        with self._exclusive() as entries:
            # Not by the window: the server gives a dead client's ids to the next one.
            others = [entry for entry in entries if entry.get("nonce") != self._nonce]
            self._store(others + [self._entry(kind, code, until) for kind, code in self._mine])

    def _entry(self, kind: str, code: int, until: Optional[float]) -> Entry:
        return {
            "owner": self._window,
            "nonce": self._nonce,
            "session": self.session or "",
            "pid": os.getpid(),
            "start": self._start,
            "kind": kind,
            "code": code,
            "until": until,
        }

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[List[Entry]]:
        """The entries, while no other client can change them; the grab ends with the connection at the latest."""
        core.grab_server(self._conn)
        try:
            yield self._load()
        finally:
            with contextlib.suppress(DeskhandError):
                core.ungrab_server(self._conn)
                self._conn.flush()

    def _load(self) -> List[Entry]:
        value = core.get_property(self._conn, self._conn.root, self._property).value
        entries: List[Entry] = []
        for line in value.decode("utf-8", "replace").splitlines():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if _is_entry(entry):
                entries.append(entry)
        return entries

    def _store(self, entries: List[Entry]) -> None:
        if not entries:
            core.delete_property(self._conn, self._conn.root, self._property)
            return
        text = "\n".join(json.dumps(entry) for entry in entries)
        utf8 = self._conn.atom("UTF8_STRING")
        core.change_property(self._conn, self._conn.root, self._property, utf8, 8, text.encode())

    def _owner_lives(self, entry: Entry, conn: Optional[Connection] = None) -> bool:
        try:
            mark = core.get_property(conn or self._conn, entry["owner"], self._mark)
        except RequestFailed:
            return False
        return mark.value.decode("latin-1") == entry.get("nonce")


def _is_entry(value: Any) -> bool:
    """Whether a line is one of ours: anybody may write on the root window."""
    if not isinstance(value, dict) or value.get("kind") not in (KEY, BUTTON):
        return False
    code, owner, until = value.get("code"), value.get("owner"), value.get("until")
    if any(isinstance(field, bool) for field in (code, owner, until)):
        return False
    if not isinstance(code, int) or not isinstance(owner, int) or not isinstance(until, (int, float, type(None))):
        return False
    return 0 < code < 256 and 0 < owner < 1 << 32


def _release(conn: Connection, codes: List[Tuple[str, int]]) -> List[Tuple[str, int]]:
    """Send a release for each of ``codes``; gives those that the server had as down.

    Not only for those: while a client keeps the device frozen (a window manager that grabs clicks synchronously), a
    press waits in the server's queue and is not down yet. A release of what is up does nothing.
    """
    if not codes:
        return []
    state = core.input_state(conn)
    released = []
    for kind, code in codes:
        if kind == KEY:
            down = code in state.keycodes
        else:
            mapped = code <= len(state.pointer_mapping)
            logical = state.pointer_mapping[code - 1] if mapped else code
            # The core state tells of five buttons; the others are told on the word of the ledger.
            down = not 1 <= logical <= 5 or bool(state.mask >> (7 + logical) & 1)
        xtest.fake_input(conn, xtest.KEY_RELEASE if kind == KEY else xtest.BUTTON_RELEASE, code)
        if down:
            released.append((kind, code))
    conn.sync()
    return released


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
