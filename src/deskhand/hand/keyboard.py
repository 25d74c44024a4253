"""Keys and chords: pressed, held and released by XTEST, with what they mean looked up on the live map.

A key that needs Shift or AltGr there gets it: ``ctrl++`` is Ctrl, Shift and the equals key on a US keyboard. With a
Cyrillic or Greek group locked, ``ctrl+c`` is still Ctrl+C: a group with a Latin c is used, and when the map has none a
spare keycode is borrowed for it, as toolkits compare keysyms.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import key_names
from .borrowing import KeyboardLoan
from .errors import nothing_sent
from .focus import FocusTarget, keyboard_target
from .held import KEY, Ledger
from .keyboard_turn import PATIENCE, KeyboardTurn
from .keymap import LOCK, Keymap, Position, read_to_press
from .ping import Pings
from .text import RETURN_PAUSE, TextTyping, before_return, settle_input
from .x11 import Connection, core, xkb, xtest

#: Milliseconds a key is down, at least, in the server's time: applications that sample the keyboard miss shorter ones.
HOLD_MS = 8
#: Tells who would get the keys now; raises when none may be sent.
Look = Callable[[], FocusTarget]
_SUBMIT = ("Return", "KP_Enter")
_LOCKS = ("Caps_Lock", "Num_Lock", "Scroll_Lock", "Shift_Lock", "ISO_Lock", "ISO_Level3_Lock", "ISO_Level5_Lock")


class Key(NamedTuple):
    """One key: its canonical keysym name (``key_names``) and the keysym."""

    name: str
    keysym: int

    @property
    def is_modifier(self) -> bool:
        return key_names.is_modifier(self.name)


class Chord(NamedTuple):
    """Keys that are down together, in the order they are pressed; ``text`` is how it was written."""

    text: str
    keys: Tuple[Key, ...]

    @property
    def presses_button(self) -> bool:
        """Whether it presses a button: the one with the focus, a dialog's default, or the one with this Alt letter."""
        modifiers = {key.name for key in self.keys if key.is_modifier}
        others = [key.name for key in self.keys if not key.is_modifier]
        if not modifiers:
            return others in (["Return"], ["KP_Enter"], ["space"])
        return modifiers <= {"Alt_L", "Alt_R"} and len(others) == 1 and len(others[0]) == 1


class _Press(NamedTuple):
    key: Key
    place: Position
    shifts: Tuple[int, ...]  # level shifts to hold while it is pressed


class _Plan(NamedTuple):
    keymap: Keymap
    state: xkb.State
    presses: List[_Press]
    borrowed: List[int]

    @property
    def codes(self) -> List[Tuple[str, int]]:
        codes = [code for press in self.presses for code in (*press.shifts, press.place.keycode)]
        return [(KEY, code) for code in dict.fromkeys(codes)]


def parse_keys(text: str) -> Chord:
    """Read ``"ctrl+shift+t"``, ``"Return"``, ``"ctrl++"``, ``"é"``; needs no display.

    Raises:
        ValueError: one line that names the unknown key and the nearest names.
    """
    return Chord(text, tuple(Key(name, key_names.keysym(name)) for name in key_names.parse_chord(text)))


class Keyboard:
    """The keyboard of one display. Every call is confirmed by a round trip before it answers."""

    def __init__(self, conn: Connection, pings: Pings, ledger: Ledger) -> None:
        self._conn = conn
        self._pings = pings
        self._ledger = ledger
        self._turn = KeyboardTurn(conn)
        #: Where ``down`` found a key: the map may have changed by the time it is released.
        self._down_at: Dict[str, int] = {}
        self._typed_at = float("-inf")

    def key(self, chord: Chord, repeat: int = 1, hold_ms: int = HOLD_MS, look: Optional[Look] = None) -> Dict[str, Any]:
        """Press and release the chord ``repeat`` times, held for ``hold_ms`` milliseconds of server time.

        ``look`` tells who gets the keys, and may refuse; it is called when it is our turn (``keyboard_target``).

        The answer: ``window`` and ``title`` of who got it, ``grabbed`` when an open menu did, and ``held_by_others``
        when modifiers that we did not press were down meanwhile; ``confirmed`` for a key that the keyboard lacks and
        that was borrowed: false when the window gives no way to know whether it saw it.

        Raises:
            ActionFailed: no window would get the keys, or the keyboard lacks one of them; nothing was sent.
        """
        if repeat < 1:
            raise ValueError(f"a key is pressed once or more, not {repeat} times")
        submits = any(key.name in _SUBMIT for key in chord.keys)
        if submits and time.monotonic() < self._typed_at + RETURN_PAUSE:
            before_return(self._conn, self._pings, keyboard_target(self._conn))
        return self._with_chord(chord, look, lambda plan: self._tap(plan, repeat, hold_ms))

    def hold(
        self,
        chord: Chord,
        seconds: float,
        alive: Callable[[], bool] = lambda: True,
        look: Optional[Look] = None,
    ) -> Dict[str, Any]:
        """Hold the chord for ``seconds``. ``repeats`` in the answer: the server repeats a key that is held.

        It is let go early when ``alive`` says that nobody wants it any more. ``look`` as for ``key``.

        Raises:
            ActionFailed: as for ``key``.
        """
        if not 0 <= seconds <= 600:
            raise ValueError(f"a key is held for 0 to 600 seconds, not {seconds:g}")

        def during(plan: _Plan) -> None:
            self._send_presses(plan)
            self._conn.sync()
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and alive():  # a lost connection raises
                self._conn.wait(lambda: not alive(), min(0.5, max(0.0, deadline - time.monotonic())))
            self._send_releases(plan, HOLD_MS if seconds * 1000 < HOLD_MS else 0)
            self._conn.sync()

        facts = self._with_chord(chord, look, during)
        facts["repeats"] = any(not key.is_modifier for key in chord.keys) and core.auto_repeats(self._conn)
        return facts

    def down(self, chord: Chord) -> Dict[str, Any]:
        """Press the chord and leave it down; the ledger holds it until ``up``. Where the focus is does not matter here.

        ``pressed`` in the answer names the keys that were up before.

        Raises:
            ActionFailed: the keyboard lacks one of the keys, and a borrowed one could not stay down; nothing was sent.
        """
        with self._turn.taken():
            return self._down(chord)

    def _down(self, chord: Chord) -> Dict[str, Any]:
        plan = self._plan(chord)
        if plan.borrowed:
            raise nothing_sent(
                f"the keyboard of display {self._conn.name} has no key for '{chord.text}', so it can not stay down:"
                " use 'key' or 'type'"
            )
        own = [(KEY, press.place.keycode) for press in plan.presses]
        with KeyboardLoan(self._conn, plan.keymap) as loan:
            self._ledger.hold_all(own)
            with self._ledger.covering([code for code in plan.codes if code not in own]):
                self._calm(plan, loan)
                self._send_presses(plan)
                self._conn.sync()
        self._down_at.update({press.key.name: press.place.keycode for press in plan.presses})
        return {"pressed": [press.key.name for press in plan.presses]}

    def up(self, chord: Chord) -> Dict[str, Any]:
        """Release the chord's keys, last one first, whoever pressed them and wherever the focus is.

        ``released`` in the answer names those that were down.
        """
        keymap = Keymap.read(self._conn)
        down = set(core.query_keymap(self._conn))
        released: List[str] = []
        for key in reversed(chord.keys):
            # ``down`` may have been another process's, with another group locked.
            found = [_find(keymap, key, group) for group in range(4)]
            codes = [self._down_at.pop(key.name, 0), *[place.keycode for place in found if place]]
            code = next((code for code in codes if code in down), 0)
            if not code:
                continue
            xtest.fake_input(self._conn, xtest.KEY_RELEASE, code)
            self._conn.sync()
            self._ledger.drop(KEY, code)
            released.append(key.name)
        return {"released": released}

    def type_text(
        self,
        text: str,
        deadline: Optional[float] = None,
        method: str = "keys",
        secret: bool = False,
        look: Optional[Look] = None,
    ) -> Dict[str, Any]:
        """Type text exactly, by keys (``TextTyping.type``) or through the clipboard (``paste.paste``).

        ``deadline`` is a moment of ``time.monotonic()``, ``look`` as for ``key``. No error holds any of the
        text, ``secret`` or not.
        """
        patience = PATIENCE if deadline is None else max(0.0, deadline - time.monotonic())
        with self._turn.taken(min(PATIENCE, patience)):
            target = self._look(look)
            if method == "paste":
                from . import paste  # it is seldom asked for, and start-up counts

                return paste.paste(self, self._conn, self._pings, text, target, deadline)
            try:
                return TextTyping(self._conn, self._pings, self._ledger).type(text, target, deadline)
            finally:
                self._typed_at = time.monotonic()

    # -- what to press ------------------------------------------------------------------------------------------------

    def _with_chord(self, chord: Chord, look: Optional[Look], send: Callable[[_Plan], None]) -> Dict[str, Any]:
        """Plan the chord, bring the keyboard into the state it needs, let ``send`` send it, and put all back."""
        with self._turn.taken():
            return self._planned(chord, self._look(look), send)

    def _look(self, look: Optional[Look]) -> FocusTarget:
        return look() if look is not None else keyboard_target(self._conn)

    def _planned(self, chord: Chord, target: FocusTarget, send: Callable[[_Plan], None]) -> Dict[str, Any]:
        plan = self._plan(chord)
        facts = target.facts()
        with KeyboardLoan(self._conn, plan.keymap) as loan:
            if plan.borrowed:
                plan = self._lend(plan, target, loan)
            with self._ledger.covering(plan.codes):
                self._calm(plan, loan)
                send(plan)
            if plan.borrowed:
                facts["confirmed"] = settle_input(self._conn, self._pings, target, 1)
        others = self._held_by_others(plan)
        if others:
            facts["held_by_others"] = others
        return facts

    def _held_by_others(self, plan: _Plan) -> List[str]:
        """Modifiers down that we did not press: they were part of what the chord meant."""
        if not plan.state.base_modifiers:
            return []
        ours = {code for _kind, code in self._ledger.held}
        codes = [code for code in core.query_keymap(self._conn) if code not in ours and plan.keymap.modifier_of(code)]
        return [key_names.name_of(plan.keymap.keysym_at(code, 0, 0)) for code in codes]

    def _plan(self, chord: Chord) -> _Plan:
        keymap, state = read_to_press(self._conn)
        held = {code for kind, code in self._ledger.held if kind == KEY}
        places: List[Tuple[Key, Optional[Position]]] = [(key, _find(keymap, key, state.group)) for key in chord.keys]
        modifiers = state.base_modifiers
        for key, place in places:
            if place is None and key.is_modifier:
                raise nothing_sent(
                    f"the keyboard of display {self._conn.name} has no {key.name} key: use another chord"
                )
            if place is not None and key.is_modifier:
                modifiers |= keymap.modifier_of(place.keycode)
        presses: List[_Press] = []
        borrowed: List[int] = []
        for key, place in places:
            if place is None:
                borrowed.append(key.keysym)
                presses.append(_Press(key, Position(0, state.group, 0, 0), ()))
            elif place.keycode not in held:
                shifts = () if key.is_modifier else tuple(keymap.shift_keys(place.modifiers & ~modifiers))
                presses.append(_Press(key, place, shifts))
        return _Plan(keymap, state, presses, borrowed)

    def _lend(self, plan: _Plan, target: FocusTarget, loan: KeyboardLoan) -> _Plan:
        """Borrow keycodes for what the map lacks, and wait until the window knows."""
        lent = dict(zip(plan.borrowed, loan.lend_letters([_cases(keysym) for keysym in plan.borrowed])))
        settle_input(self._conn, self._pings, target, 0)
        presses = []
        for press in plan.presses:
            if not press.place.keycode:
                press = press._replace(place=lent[press.key.keysym])
            presses.append(press)
        return plan._replace(presses=presses)

    def _calm(self, plan: _Plan, loan: KeyboardLoan) -> None:
        """Take away locks, latches and a group that would make the chord mean something else."""
        if any(press.key.name in _LOCKS for press in plan.presses):
            return
        state, keymap = plan.state, plan.keymap
        group, locks = state.group, state.locked_modifiers
        matters = bool(state.latched_modifiers or state.latched_group)
        for press in plan.presses:
            place = press.place
            if press.key.is_modifier:
                continue
            if place.keycode in keymap and keymap.effective_group(place.keycode, group) != place.group:
                group, matters = place.group, True
            letter = key_names.character_of(press.key.keysym)
            if locks & LOCK and letter is not None and letter.lower() != letter.upper():
                matters = True
            if (place.modifiers | locks) & keymap.num_lock and keymap.level_depends(place, keymap.num_lock):
                matters = True
        if matters:
            wanted = keymap.num_lock if any(p.place.modifiers & keymap.num_lock for p in plan.presses) else 0
            loan.neutralise(state, wanted, group)

    # -- sending ------------------------------------------------------------------------------------------------------

    def _tap(self, plan: _Plan, repeat: int, hold_ms: int) -> None:
        for turn in range(repeat):
            if turn:
                self._conn.sync()
            self._send_presses(plan, first_delay=HOLD_MS if turn else 0)
            self._send_releases(plan, hold_ms)  # confirmed by ``Ledger.covering``

    def _send_presses(self, plan: _Plan, first_delay: int = 0) -> None:
        """Press in order; a level shift is down only around the key that needs it, the last key's until release."""
        delay = first_delay
        shifts: Tuple[int, ...] = ()
        for press in plan.presses:
            for code in shifts:
                if code not in press.shifts:
                    xtest.fake_input(self._conn, xtest.KEY_RELEASE, code)
            for code in press.shifts:
                if code not in shifts:
                    xtest.fake_input(self._conn, xtest.KEY_PRESS, code, delay_ms=delay)
                    delay = 0
            shifts = press.shifts
            xtest.fake_input(self._conn, xtest.KEY_PRESS, press.place.keycode, delay_ms=delay)
            delay = 0

    def _send_releases(self, plan: _Plan, delay_ms: int) -> None:
        for press in reversed(plan.presses):
            xtest.fake_input(self._conn, xtest.KEY_RELEASE, press.place.keycode, delay_ms=delay_ms)
            delay_ms = 0
            for code in reversed(press.shifts):
                xtest.fake_input(self._conn, xtest.KEY_RELEASE, code)


def _find(keymap: Keymap, key: Key, group: int) -> Optional[Position]:
    for name in (key.name, *key_names.substitutes(key.name)):
        place = keymap.find(key_names.keysym(name) if name != key.name else key.keysym, group)
        # A modifier on a shifted level (Meta on Alt's key) is not that modifier.
        if place is not None and not (key.is_modifier and place.level):
            return place
    return None


def _cases(keysym: int) -> Tuple[int, int]:
    """What a borrowed key says plain and with Shift, as a real key of that letter would."""
    letter = key_names.character_of(keysym)
    if letter is None or letter.isupper() or len(letter.upper()) != 1:
        return keysym, keysym
    return keysym, key_names.keysym_of(letter.upper())
