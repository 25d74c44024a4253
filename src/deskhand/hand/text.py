"""Exact text through the keyboard.

Characters on the live map are pressed where they are. Others borrow spare keycodes, a batch at a time; since a client
reads a changed map later than the key that needs it, a ping barrier (``Pings.barrier``) stands before the keys of a
batch and before the map is changed again. A window that answers no ping gets time instead, and the answer says
``confirmed: false`` then, because timing alone is not exact on a busy machine.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import client_processes, key_names
from .borrowing import KeyboardLoan
from .errors import ActionFailed, RequestFailed
from .focus import FocusTarget, client_of, top_level_of
from .held import KEY, Ledger
from .held_keys import LiftedKeys
from .keymap import Keymap, Position, read_to_press
from .ping import Pings
from .x11 import Connection, core, xkb, xtest

#: Seconds a text may take when nothing is said: a floor, and for each character.
BASE_SECONDS, CHARACTER_SECONDS = 20.0, 0.02
#: Seconds a window that answers pings may take to handle a batch before it counts as hanging.
BARRIER_SECONDS = 4.0
#: Seconds between the last key of a batch and the next change of the map, for windows that answer no ping.
SILENT_GAP = 0.15
#: Seconds between the last character and a Return that submits it. A completion that is being looked up swallows the
#: Return: GTK's file dialog loses one that comes within 0.05 s, whoever types it.
RETURN_PAUSE = 0.15
#: Keys sent between two looks at the focus.
_CHUNK = 32
#: A press of the same keycode in the same millisecond as its release looks like auto-repeat to some toolkits.
_REPEAT_DELAY_MS = 1
_RETURN = 0xFF0D


class Stroke(NamedTuple):
    """One key for one character: ``end`` is how many characters of the text are typed with it."""

    keysym: int
    end: int
    place: Optional[Position]


def check_text(text: str) -> None:
    """Refuse what no key types.

    Raises:
        ValueError: a control character other than newline and tab, or half of a surrogate pair. Names its position
            and never any of the text.
    """
    for index, character in enumerate(text):
        point = ord(character)
        if character in "\n\t" or (character == "\r" and text[index + 1 : index + 2] == "\n"):
            continue
        if point < 0x20 or 0x7F <= point < 0xA0:
            raise ValueError(f"character {index + 1} of the text is a control character: use newline, tab, or 'key'")
        if 0xD800 <= point <= 0xDFFF:
            raise ValueError(f"character {index + 1} of the text is half of a surrogate pair: send whole characters")


def default_deadline(text: str) -> float:
    """The moment (``time.monotonic()``) by which a text should be typed when nothing else is said."""
    return time.monotonic() + BASE_SECONDS + CHARACTER_SECONDS * len(text)


class TextTyping:
    """Types one text into the window with the keyboard focus; made anew for each."""

    def __init__(self, conn: Connection, pings: Pings, ledger: Ledger) -> None:
        self._conn = conn
        self._pings = pings
        self._ledger = ledger
        self._keymap: Keymap
        self._target: FocusTarget
        self._hangs = False  # it answers no ping, or no longer
        self._held: List[int] = []  # level shifts down right now
        self._group = 0
        self._last = 0
        self._done = 0  # characters sent
        self._total = 0
        self._deadline = 0.0

    def type(self, text: str, target: FocusTarget, deadline: Optional[float] = None) -> Dict[str, Any]:
        """Type ``text`` into ``target``, which has the focus; give up at ``deadline`` (``time.monotonic()``).

        The answer: ``typed`` (characters), ``confirmed`` (what arrived is exact), ``window`` and ``title`` of who got
        it, ``grabbed`` when an open menu did, ``borrowed`` (how many characters had no key), ``lifted`` (keys found
        down that we had not pressed).

        Raises:
            ValueError: the text holds what can not be typed (``check_text``).
            ActionFailed: says how far it got, ``typed`` in its facts; no part of the text is in the message.
        """
        check_text(text)
        self._total = len(text)
        self._deadline = default_deadline(text) if deadline is None else deadline
        self._target = target
        self._keymap, _ = read_to_press(self._conn)
        strokes = self._strokes(text)
        missing = {stroke.keysym for stroke in strokes if stroke.place is None}
        confirmed = True
        with LiftedKeys(self._conn, self._ledger, self._keymap) as lifted:
            with KeyboardLoan(self._conn, self._keymap) as loan:
                self._calm(loan, strokes)
                body, submit = _split_return(strokes)
                for batch in self._batches(body, loan.capacity() if missing else 0):
                    confirmed = self._type_batch(batch, loan) and confirmed
                if submit:
                    before_return(self._conn, self._pings, self._target)
                    confirmed = self._type_batch(submit, loan) and confirmed
            self._check_map()
        facts: Dict[str, Any] = {"typed": self._total, "confirmed": confirmed, **self._target.facts()}
        if missing:
            facts["borrowed"] = len(missing)
        if lifted.strangers:
            facts["lifted"] = lifted.strangers
        return facts

    # -- what to press ------------------------------------------------------------------------------------------------

    def _strokes(self, text: str) -> List[Stroke]:
        places: Dict[int, Optional[Position]] = {}
        strokes: List[Stroke] = []
        for index, character in enumerate(text):
            if character == "\r":
                continue  # the newline after it is the Return
            keysym = {"\n": _RETURN, "\t": 0xFF09}.get(character) or key_names.keysym_of(character)
            if keysym not in places:
                place = self._keymap.find(keysym)
                places[keysym] = place if place and not place.modifiers & self._keymap.num_lock else None
            strokes.append(Stroke(keysym, index + 1, places[keysym]))
        return strokes

    def _batches(self, strokes: List[Stroke], capacity: int) -> List[List[Stroke]]:
        """Runs of strokes that need no more than ``capacity`` borrowed keysyms at a time."""
        batches: List[List[Stroke]] = [[]]
        borrowed: "set[int]" = set()
        for stroke in strokes:
            if stroke.place is None:
                if not capacity:
                    raise self._failed("the keyboard map has no spare keycode for a character it lacks; paste the text")
                if stroke.keysym not in borrowed and len(borrowed) == capacity:
                    borrowed.clear()
                    batches.append([])
                borrowed.add(stroke.keysym)
            batches[-1].append(stroke)
        return batches

    def _calm(self, loan: KeyboardLoan, strokes: List[Stroke]) -> None:
        """Bring locks, latches and the group to naught: they change what keys mean."""
        state = xkb.get_state(self._conn)
        groups = {stroke.place.group for stroke in strokes if stroke.place is not None}
        if state.locked_modifiers or state.latched_modifiers or state.group or state.locked_group:
            loan.neutralise(state)
        if groups - {0}:
            loan.use_groups(state, sorted(groups | {0}))

    # -- sending ------------------------------------------------------------------------------------------------------

    def _type_batch(self, batch: List[Stroke], loan: KeyboardLoan) -> bool:
        """Send a batch; tells whether what arrives is sure to be exact."""
        wanted = list(dict.fromkeys(stroke.keysym for stroke in batch if stroke.place is None))
        lent: Dict[int, Position] = {}
        answered = True
        if wanted:
            lent = dict(zip(wanted, loan.lend(wanted)))
            answered = self._barrier(0)
        places = [stroke.place or lent[stroke.keysym] for stroke in batch]
        try:
            self._send(batch, places, loan)
        except ActionFailed:
            if wanted:
                # What was sent must be read with the map it was sent for, before that goes back.
                settle_input(self._conn, self._pings, self._target, len(batch), 1.0)
            raise
        return self._barrier(len(batch)) and answered if wanted else True

    def _send(self, batch: List[Stroke], places: List[Position], loan: KeyboardLoan) -> None:
        codes = {place.keycode for place in places}
        codes.update(code for place in places for code in self._keymap.shift_keys(place.modifiers))
        with self._ledger.covering([(KEY, code) for code in sorted(codes)]):
            for start in range(0, len(batch), _CHUNK):
                if self._done:
                    self._check_progress()
                for stroke, place in zip(batch[start : start + _CHUNK], places[start : start + _CHUNK]):
                    self._press(place, borrowed=stroke.place is None, loan=loan)
                self._conn.sync()
                self._done = batch[min(start + _CHUNK, len(batch)) - 1].end
            self._hold_exactly([])
            self._conn.sync()

    def _press(self, place: Position, borrowed: bool, loan: KeyboardLoan) -> None:
        # A key with one group is read in it whatever the keyboard's group is, as is a borrowed one.
        if not borrowed and self._keymap.effective_group(place.keycode, self._group) != place.group:
            loan.lock_group(place.group)
            self._group = place.group
        self._hold_exactly(self._keymap.shift_keys(place.modifiers))
        delay = _REPEAT_DELAY_MS if place.keycode == self._last else 0
        xtest.fake_input(self._conn, xtest.KEY_PRESS, place.keycode, delay_ms=delay)
        xtest.fake_input(self._conn, xtest.KEY_RELEASE, place.keycode)
        self._last = place.keycode

    def _hold_exactly(self, codes: List[int]) -> None:
        for code in self._held:
            if code not in codes:
                xtest.fake_input(self._conn, xtest.KEY_RELEASE, code)
        for code in codes:
            if code not in self._held:
                xtest.fake_input(self._conn, xtest.KEY_PRESS, code)
        self._held = list(codes)

    def _barrier(self, keys: int) -> bool:
        """Wait until the window has handled everything so far; whether that is certain."""
        if self._hangs:
            return settle_input(self._conn, self._pings, None, keys)
        sure = settle_input(self._conn, self._pings, self._target, keys, self._deadline - time.monotonic())
        self._hangs = not sure
        return sure

    # -- what may go wrong on the way ---------------------------------------------------------------------------------

    def _check_progress(self) -> None:
        if time.monotonic() > self._deadline:
            raise self._failed("time was up")
        if self._target.grabbed:
            return
        focus = core.get_input_focus(self._conn)
        if focus == self._target.window or self._target.by_pointer:
            return
        if focus in (core.FOCUS_NONE, core.FOCUS_POINTER_ROOT, self._conn.root):
            raise self._failed("the window lost the keyboard focus")
        try:
            now = top_level_of(self._conn, focus)
        except RequestFailed:
            raise self._failed("the window with the keyboard focus closed") from None
        if now != self._target.top_level:
            raise self._failed(f"the keyboard focus moved to window {now}")

    def _check_map(self) -> None:
        """Somebody who changed the map meanwhile (setxkbmap, a VNC server) may have changed characters with it."""
        if Keymap.read(self._conn) != self._keymap:
            raise self._failed("the keyboard map was changed by another program meanwhile, so it may not be exact")

    def _failed(self, why: str) -> ActionFailed:
        error = ActionFailed(f"{self._done} of {self._total} characters were typed: {why}", typed=self._done)
        if not self._done:
            error.sent = "none"
        return error


def before_return(conn: Connection, pings: Pings, target: FocusTarget) -> None:
    """Let the window finish with what was typed into it, before a Return submits that (``RETURN_PAUSE``).

    A terminal hands on what it gets in order, and completes nothing.
    """
    if client_processes.is_terminal(client_processes.pid_of(conn, target.window)):
        return
    window = _ping_window(conn, pings, target)
    if window is not None:
        pings.barrier(window, BARRIER_SECONDS)
    conn.wait(lambda: False, RETURN_PAUSE)


def _split_return(strokes: List[Stroke]) -> Tuple[List[Stroke], List[Stroke]]:
    """The text, and the Returns at its end that submit it; a text of nothing else is not split."""
    end = len(strokes)
    while end and strokes[end - 1].keysym == _RETURN:
        end -= 1
    return (strokes[:end], strokes[end:]) if end else (strokes, [])


def settle_input(
    conn: Connection, pings: Pings, target: Optional[FocusTarget], keys: int, limit: float = BARRIER_SECONDS
) -> bool:
    """Wait until ``target``'s client has handled everything sent so far, ``keys`` keys among it.

    True when it said so (``Pings.barrier``). A client that answers no ping (None: one that is known not to) gets time
    instead, more on a busy machine, and False tells that nothing is certain.
    """
    window = _ping_window(conn, pings, target) if target is not None and limit > 0 else None
    if window is not None and pings.barrier(window, min(BARRIER_SECONDS, limit)) is not None:
        return True
    busy = min(4.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
    gap = max(SILENT_GAP * busy + 0.002 * keys, 3 * pings.slowest) if keys else 0.02 * busy
    conn.wait(lambda: False, gap)
    return False


def _ping_window(conn: Connection, pings: Pings, target: FocusTarget) -> Optional[int]:
    """The window whose ping tells that ``target``'s client has handled its events; None when none does."""
    if target.grabbed and client_of(conn, target.menu) != client_of(conn, target.window):
        return None
    return pings.target(target.window)
