"""The ledger of held input: what we have pressed and not released, written on the root window before the press.

A process that dies half-way (``kill -9``) leaves its entries there; the next process of ours on that display releases
them. Entries live in the root property ``_DESKHAND_HELD`` (see ``owned_property``)::

    {"owner": window, "nonce": "...", "session": "name", "pid": 4242, "start": 917, "kind": "key"|"button", "code": 38,
     "until": null|s}

``until`` (seconds of CLOCK_BOOTTIME, one clock for the whole machine) is set when a named session ended cleanly and
keeps what ``key_down`` and ``mouse_down`` pressed for its next call.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Callable, Iterable, Iterator, List, Optional, Tuple

from .errors import ActionFailed
from .owned_property import Line, OwnedProperty
from .state import process_start_time
from .x11 import Connection, core, xtest

KEY, BUTTON = "key", "button"
#: Seconds that the server may keep input back. A window manager freezes the pointer at a click until it has seen it (X
#: Window System Protocol, GrabButton and AllowEvents), and on a busy machine that takes a while.
THAW_SECONDS = 3.0
#: Seconds between two looks whether it does so still: no event tells.
LOOK_SECONDS = 0.002
#: Seconds that what a named session left down at a clean exit stays down.
KEEP_SECONDS = 60.0


class Ledger:
    """What this process holds down on one display; ``session`` is the name that may take it up again later."""

    def __init__(self, conn: Connection, session: Optional[str] = None) -> None:
        self._conn = conn
        self.session = session
        self._lines = OwnedProperty(conn, "_DESKHAND_HELD", _is_entry)
        self._start = process_start_time(os.getpid())
        self._mine: List[Tuple[str, int]] = []
        #: What was found pressed by processes that are gone, and released: ``[("key", 38), ...]``.
        self.released_of_others: List[Tuple[str, int]] = []
        self._take_over()

    @property
    def held(self) -> List[Tuple[str, int]]:
        """What is down by our doing, in the order of the presses."""
        return list(self._mine)

    def take_released_of_others(self) -> List[str]:
        """What ``released_of_others`` holds, in words, once: the next answer tells it."""
        found, self.released_of_others = self.released_of_others, []
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
        """Everything in ``codes`` may be pressed inside; it is released at the end, whether or not the body did so.

        The end confirms it by a round trip.

        Raises:
            ActionFailed: a button was still down ``THAW_SECONDS`` after its release: what was sent has not arrived.
        """
        new = [item for item in dict.fromkeys(codes) if item not in self._mine]
        self.hold_all(new)
        try:
            yield
        finally:
            kept_back = [item for item in self.release(new) if item[0] == BUTTON]
        # Keys may wait in the server's queue: they have no place, and stay in order.
        if kept_back and not thawed(self._conn, lambda: not _seen_down(core.input_state(self._conn), kept_back)):
            raise ActionFailed(
                f"a button is down {THAW_SECONDS:g} s after its release: the window manager keeps the click back, or a"
                " person holds the button; look again before the next action"
            )

    def release(self, codes: Iterable[Tuple[str, int]]) -> List[Tuple[str, int]]:
        """Release ``codes``, last pressed first; gives those that were seen to be down."""
        wanted = [item for item in reversed(self._mine) if item in set(codes)]
        released = _release(self._conn, wanted)
        self.drop_all(wanted)
        return released

    def release_all(self) -> List[Tuple[str, int]]:
        """Release everything we hold."""
        return self.release(self.held)

    def put_right(self) -> None:
        """Release what processes left that have died since. One round trip when nobody else holds anything."""
        if any(not self._lines.is_ours(line) for line in self._lines.read()):
            self._take_over()

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
        self._lines.end_own_connection(conn)

    def _take_over(self) -> None:
        """Release what dead processes left, and take up what our own session kept."""
        with self._lines.exclusive():
            alive: List[Line] = []
            dead: List[Line] = []
            lines = self._lines.read()
            known = self._known_to_devices(lines)
            for entry in known:
                if entry.get("until") is None:
                    (alive if self._lines.lives(entry) else dead).append(entry)
                elif not 0 <= entry["until"] - _now() <= KEEP_SECONDS:
                    dead.append(entry)
                elif self.session and entry.get("session") == self.session:
                    if (entry["kind"], entry["code"]) not in self._mine:
                        self._mine.append((entry["kind"], entry["code"]))
                else:
                    alive.append(entry)
            if dead or self._mine or len(known) < len(lines):
                others = {(e["kind"], e["code"]) for e in alive} | set(self._mine)
                orphans = [(e["kind"], e["code"]) for e in reversed(dead)]
                self.released_of_others += _release(self._conn, [o for o in orphans if o not in others])
                self._lines.store(alive)
                self._lines.write(*self._entries())

    def _known_to_devices(self, lines: List[Line]) -> List[Line]:
        """Without keys and buttons that no device has: anybody may write that property, and the server refuses them."""
        setup = self._conn.setup
        buttons = 0
        if any(line["kind"] == BUTTON for line in lines):
            buttons = len(core.get_pointer_mapping(self._conn))
        return [
            line
            for line in lines
            if (
                setup.min_keycode <= line["code"] <= setup.max_keycode
                if line["kind"] == KEY
                else line["code"] <= buttons
            )
        ]

    def _write(self, until: Optional[float] = None) -> None:
        with self._lines.exclusive():
            self._lines.write(*self._entries(until))

    def _entries(self, until: Optional[float] = None) -> List[Line]:
        about = {"session": self.session or "", "pid": os.getpid(), "start": self._start}
        return [{**about, "kind": kind, "code": code, "until": until} for kind, code in self._mine]


def _is_entry(value: Line) -> bool:
    if value.get("kind") not in (KEY, BUTTON):
        return False
    code, owner, until = value.get("code"), value.get("owner"), value.get("until")
    if any(isinstance(field, bool) for field in (code, owner, until)):
        return False
    if not isinstance(code, int) or not isinstance(owner, int) or not isinstance(until, (int, float, type(None))):
        return False
    return 0 < code < 256 and 0 < owner < 1 << 32


def thawed(conn: Connection, arrived: Callable[[], bool]) -> bool:
    """Look until what was sent has ``arrived``, ``THAW_SECONDS`` at most; tells whether it has."""
    deadline = time.monotonic() + THAW_SECONDS
    while not arrived():
        if time.monotonic() >= deadline:
            return False
        conn.wait(lambda: False, LOOK_SECONDS)
    return True


def _release(conn: Connection, codes: List[Tuple[str, int]]) -> List[Tuple[str, int]]:
    """Send a release for each of ``codes``; gives those that the server had as down.

    Not only for those: while a client keeps the device frozen (a window manager that grabs clicks synchronously), a
    press waits in the server's queue and is not down yet. A release of what is up does nothing.
    """
    if not codes:
        return []
    asked = core.ask_input_state(conn)
    for kind, code in codes:
        xtest.fake_input(conn, xtest.KEY_RELEASE if kind == KEY else xtest.BUTTON_RELEASE, code)
    conn.sync()  # one round trip for all of it: the state was asked for first, so it is that of before
    state = core.take_input_state(conn, asked)
    return [item for item in codes if _is_down(state, item, unseen=True)]


def _seen_down(state: core.InputState, codes: List[Tuple[str, int]]) -> List[Tuple[str, int]]:
    return [item for item in codes if _is_down(state, item, unseen=False)]


def _is_down(state: core.InputState, item: Tuple[str, int], unseen: bool) -> bool:
    """Whether the server has it as down; ``unseen`` for buttons after the fifth, which the core state leaves out."""
    kind, code = item
    if kind == KEY:
        return code in state.keycodes
    logical = state.pointer_mapping[code - 1] if code <= len(state.pointer_mapping) else code
    return bool(state.mask >> (7 + logical) & 1) if 1 <= logical <= 5 else unseen


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
