"""The live keyboard map: which keycode, group and modifiers give a keysym, and which keycodes are spare.

Read anew for each text, as a VNC server or setxkbmap may change the map at any time (X Keyboard Extension Protocol,
section 2, Keyboard State, and section 12, Key Types).
"""

from __future__ import annotations

import functools
from typing import Dict, List, NamedTuple, Optional, Tuple

from . import key_names
from .errors import nothing_sent
from .x11 import Connection, xkb
from .x11.xkb import KeySymbols

SHIFT, LOCK, CONTROL = 1, 2, 4
#: Keysyms of keys that choose a level while they are held: Shift_L, Shift_R, Mode_switch, ISO_Level3_Shift,
#: ISO_Level5_Shift. A key that locks or latches would leave its mark behind.
LEVEL_SHIFTS = (0xFFE1, 0xFFE2, 0xFF7E, 0xFE03, 0xFE11)
LEVEL_3 = 0xFE03
NUM_LOCK_KEYSYM = 0xFF7F
#: The last keycode of the main block of a PC keyboard. The same signs are often on multimedia keycodes as well, which
#: applications that look at keycodes (virtual machines, remote desktops) do not know.
_MAIN_BLOCK = 91
#: Keycode 8 is the lowest legal one; toolkits take it for "no key".
_NEVER_SPARE = 8


class Position(NamedTuple):
    """Where a keysym is: press ``keycode`` in ``group`` with exactly the modifiers of ``modifiers`` in effect.

    Of these, Num Lock (``Keymap.num_lock``) must be locked, and the others held (``Keymap.shift_keys``).
    """

    keycode: int
    group: int
    level: int
    modifiers: int


class Keymap:
    """One reading of the map; ``read`` takes one round trip."""

    def __init__(self, raw: xkb.Map) -> None:
        self._raw = raw
        self._places: Dict[int, List[Position]] = {}
        self._shift_keys: Dict[int, int] = {}
        #: The modifier bit that Num Lock sets: the keypad's digits need it.
        self.num_lock = 0
        for keycode, mask in sorted(raw.modifiers.items()):
            symbols = raw.keys.get(keycode)
            first = symbols.groups[0][0] if symbols and symbols.groups and symbols.groups[0] else 0
            if first == NUM_LOCK_KEYSYM:
                self.num_lock = mask
            if first in LEVEL_SHIFTS and mask and not mask & (mask - 1):
                self._shift_keys.setdefault(mask, keycode)
        for keycode, symbols in raw.keys.items():
            for group, row in enumerate(symbols.groups):
                for level, number in enumerate(row):
                    if number:
                        modifiers = self._modifiers_for(symbols.types[group], level)
                        if modifiers is not None:
                            position = Position(keycode, group, level, modifiers)
                            self._places.setdefault(number, []).append(position)

    @classmethod
    def read(cls, conn: Connection) -> "Keymap":
        """The core keyboard's map as it is now.

        Raises:
            Unsupported: the server has no XKEYBOARD extension.
        """
        xkb.use(conn)
        return _keymap_of(xkb.get_map_reply(conn))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keymap) and self._raw == other._raw

    __hash__ = None  # type: ignore[assignment]

    def find(self, keysym: int, group: int = 0) -> Optional[Position]:
        """The best position of a keysym (or of one for the same character), preferring those live in ``group``.

        None when no key has it, or only with a modifier that locks (other than Num Lock).
        """
        character = key_names.character_of(keysym) is not None
        for number in key_names.equivalents(keysym):
            places = self._places.get(number)
            if places:
                return min(places, key=lambda place: self._cost(place, group, character))
        return None

    def _cost(self, place: Position, group: int, character: bool) -> List[int]:
        away = int(self.effective_group(place.keycode, group) != place.group)
        modifiers = bin(place.modifiers).count("1")
        if character:
            return [away, place.group, int(place.keycode > _MAIN_BLOCK), modifiers, place.keycode]
        return [away, place.group, modifiers, place.keycode]

    def effective_group(self, keycode: int, group: int) -> int:
        """The group a key is read in while the keyboard's group is ``group``."""
        symbols = self._raw.keys.get(keycode)
        return symbols.effective_group(group) if symbols else 0

    def __contains__(self, keycode: int) -> bool:
        """Whether that keycode means anything on this map."""
        symbols = self._raw.keys.get(keycode)
        return symbols is not None and means_something(symbols)

    def level_depends(self, place: Position, modifiers: int) -> bool:
        """Whether any of ``modifiers`` can change what the key of ``place`` means."""
        symbols = self._raw.keys.get(place.keycode)
        if symbols is None or place.group >= len(symbols.groups):
            return False  # a borrowed keycode: it says the same on every level
        return bool(self._raw.types[symbols.types[place.group]].mask & modifiers)

    def keysym_at(self, keycode: int, group: int, modifiers: int) -> int:
        """The keysym a press of ``keycode`` means with that group and those modifiers in effect (0: none)."""
        symbols = self._raw.keys.get(keycode)
        if symbols is None or not symbols.groups:
            return 0
        index = self.effective_group(keycode, group)
        kind = self._raw.types[symbols.types[index]]
        level = kind.levels.get(modifiers & kind.mask, 0)
        row = symbols.groups[index]
        return row[level] if level < len(row) else 0

    def modifier_of(self, keycode: int) -> int:
        """The modifier bits that ``keycode`` sets while it is down."""
        return self._raw.modifiers.get(keycode, 0)

    def shift_keys(self, modifiers: int) -> List[int]:
        """The keycodes to hold for a position's modifiers."""
        return [self._shift_keys[1 << bit] for bit in range(8) if modifiers & ~self.num_lock & 1 << bit]

    def spare(self) -> List[int]:
        """Keycodes that mean nothing on this map and set no modifier, highest first; never 8."""
        found = [
            keycode
            for keycode, symbols in self._raw.keys.items()
            if keycode != _NEVER_SPARE and not means_something(symbols) and not self.modifier_of(keycode)
        ]
        return sorted(found, reverse=True)

    def borrowable_types(self) -> Dict[int, Tuple[int, List[int]]]:
        """Key types for borrowed keys: the number of levels to the type's index and each level's modifiers.

        One level always; two with a Shift key; four with one for the third level as well.
        """
        third = next((mask for mask, code in self._shift_keys.items() if self.keysym_at(code, 0, 0) == LEVEL_3), 0)
        wanted = [[0]]
        if SHIFT in self._shift_keys:
            wanted.append([0, SHIFT])
            if third:
                wanted.append([0, SHIFT, third, SHIFT | third])
        types: Dict[int, Tuple[int, List[int]]] = {}
        for modifiers in wanted:
            mask = modifiers[-1]
            for index, kind in enumerate(self._raw.types):
                levels = [kind.levels.get(m, 0) for m in modifiers]
                if kind.mask == mask and kind.width == len(modifiers) and levels == list(range(len(modifiers))):
                    types[len(modifiers)] = (index, modifiers)
                    break
        return types

    def _modifiers_for(self, type_index: int, level: int) -> Optional[int]:
        """The smallest set of modifiers we can set that chooses ``level``; None when there is none."""
        kind = self._raw.types[type_index]
        possible = [mask for mask, found in kind.levels.items() if found == level]
        if level == 0 and 0 not in kind.levels:
            possible.append(0)
        ours = sum(self._shift_keys) | self.num_lock
        possible = [mask for mask in possible if not mask & ~ours]
        return min(possible, key=lambda mask: (bin(mask).count("1"), mask), default=None)


@functools.lru_cache(maxsize=4)
def _keymap_of(reply: bytes) -> Keymap:
    """The map is asked for at every key, and nearly always the same: reading it anew takes longer than asking."""
    return Keymap(xkb.parse_map(reply))


def means_something(symbols: KeySymbols) -> bool:
    """Whether any keysym stands on that key."""
    return any(any(row) for row in symbols.groups)


def read_to_press(conn: Connection) -> Tuple[Keymap, xkb.State]:
    """The map and the state, for keys that are about to be pressed; one round trip.

    Raises:
        ActionFailed: the server would drop keys without a word: Slow Keys every short press, Bounce Keys the second of
            a double letter. Nothing was sent.
        Unsupported: the server has no XKEYBOARD extension.
    """
    found = xkb.get_now(conn)
    _check_no_key_is_dropped(found.controls)
    return _keymap_of(found.map_reply), found.state


def _check_no_key_is_dropped(controls: int) -> None:
    for bit, name in ((xkb.SLOW_KEYS, "Slow Keys"), (xkb.BOUNCE_KEYS, "Bounce Keys")):
        if controls & bit:
            raise nothing_sent(f"{name} is on, so the X server would drop keys: turn it off in accessibility settings")
