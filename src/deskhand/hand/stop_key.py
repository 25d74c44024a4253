"""The key with which the person ends an agent's work, pressed on a keyboard of theirs, whatever has the focus."""

from __future__ import annotations

from typing import Dict, Iterable, List, Optional, Set, Tuple

from . import key_names

#: Milliseconds from the first press to the last, when there are several.
WITHIN_MS = 2000
#: A chord that names one side means the key on either.
_SIDES = (("_L", "_R"), ("_R", "_L"))


class StopKey:
    """``keys`` (``"Escape"``, ``"ctrl+alt+q"``) pressed ``presses`` times within two seconds, and no other key between.

    Raises:
        ValueError: A key is not known, or ``presses`` is less than 1.
    """

    def __init__(self, keys: str = "Escape", presses: int = 3) -> None:
        if presses < 1:
            raise ValueError("the stop key is pressed once or more")
        self.keys = keys
        self.presses = presses
        self._chord = [_either_side(name) for name in key_names.parse_chord(keys)]
        self._codes: List[Set[int]] = []
        self._times: List[int] = []

    def __str__(self) -> str:
        times = {1: "", 2: " twice", 3: " three times"}.get(self.presses, f" {self.presses} times")
        return self.keys + times

    def learn(self, first: int, keymap: Iterable[Tuple[int, ...]]) -> None:
        """Take in which keycodes have which keysyms: the rows of GetKeyboardMapping, from keycode ``first`` on."""
        codes: Dict[int, Set[int]] = {}
        for code, row in enumerate(keymap, first):
            for keysym in row:
                codes.setdefault(keysym, set()).add(code)
        self._codes = [set().union(*(codes.get(number, set()) for number in numbers)) for numbers in self._chord]

    @property
    def missing(self) -> Optional[str]:
        """What is wrong when the keyboard has not all of these keys; None when it has."""
        return None if all(self._codes) else f"the keyboard has no key for the stop key {self.keys!r}: choose another"

    def pressed(self, code: int, held: Set[int], time: int) -> bool:
        """A key goes down while ``held`` are; ``time`` is the server's, in milliseconds. True: that was the last press.

        The last key of the chord is what counts; the others must be down by then.
        """
        *before, last = self._codes
        if any(code in codes for codes in before):
            return False
        if code not in last or not all(codes & held for codes in before):
            self._times.clear()
            return False
        self._times = [one for one in self._times if (time - one) & 0xFFFFFFFF <= WITHIN_MS] + [time]
        if len(self._times) < self.presses:
            return False
        self._times.clear()
        return True


def _either_side(name: str) -> List[int]:
    names = [name]
    if key_names.is_modifier(name):
        names += [name[:-2] + other for side, other in _SIDES if name.endswith(side)]
    return [number for one in names for number in key_names.equivalents(key_names.keysym(one))]
