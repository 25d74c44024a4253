"""What typing changes on the keyboard for a moment, and puts back: spare keycodes, locks, latches and the group.

It stands in the root property ``_DESKHAND_BORROWED`` before it is done, so that what a killed process left is put
back by the next one (``restore_borrowed``), but only where the keyboard still holds our values.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .errors import ActionFailed, RequestFailed, nothing_sent
from .keymap import Keymap, Position, means_something
from .owned_property import Line, OwnedProperty
from .x11 import Connection, core, xkb

PROPERTY = "_DESKHAND_BORROWED"
ALL_MODIFIERS = 0xFF
#: A borrowed key without levels of its own: one group, wherever the keyboard's group is.
_ONE_GROUP = 1


class KeyboardLoan:
    """The keyboard, changed for the length of a ``with`` block."""

    def __init__(self, conn: Connection, keymap: Keymap) -> None:
        self._conn = conn
        self._keymap = keymap
        self._record = OwnedProperty(conn, PROPERTY)
        self._spare: Optional[List[int]] = None
        self._lent: Dict[int, List[int]] = {}  # keycode -> every keysym it got from us
        self._was: Dict[int, xkb.KeySymbols] = {}  # keycode -> how it was found
        self._state: Optional[xkb.State] = None
        self._locks = 0
        self._groups: List[int] = []

    def __enter__(self) -> "KeyboardLoan":
        return self

    def __exit__(self, *_: Any) -> None:
        if not self._conn.closed:
            self.give_back()

    # -- locks and the group ------------------------------------------------------------------------------------------

    def neutralise(self, state: xkb.State, locks: int = 0, group: int = 0) -> None:
        """Lock exactly the modifiers ``locks`` and that group; no latch is left. ``state`` is how it was found."""
        if self._state is None:
            self._state = state
        if locks != self._locks or group not in self._groups:
            self._locks = locks
            self._groups.append(group)
            self._note()
        xkb.latch_lock_state(
            self._conn,
            affect_locks=ALL_MODIFIERS,
            locks=locks,
            lock_group=True,
            group=group,
            affect_latches=ALL_MODIFIERS,
            latch_group=True,
        )

    def use_groups(self, state: xkb.State, groups: Sequence[int]) -> None:
        """Note that the locked group will change among ``groups``; ``lock_group`` then does it without more ado."""
        if self._state is None:
            self._state = state
            self._locks = state.locked_modifiers
        new = [group for group in groups if group not in self._groups]
        if new:
            self._groups += new
            self._note()

    def lock_group(self, group: int) -> None:
        xkb.latch_lock_state(self._conn, lock_group=True, group=group)

    # -- spare keycodes -----------------------------------------------------------------------------------------------

    def capacity(self) -> int:
        """How many keysyms can be lent at a time."""
        return len(self._spare_keycodes()) * max(self._keymap.borrowable_types(), default=0)

    def lend(self, keysyms: Sequence[int]) -> List[Position]:
        """Put keysyms on spare keycodes; where each is, in the same order.

        As few of them as possible share a keycode, as those need Shift or the third level's key. A second call replaces
        what the first one lent: the window must have handled its keys before.

        Raises:
            ActionFailed: the map has not enough spare keycodes; nothing was changed.
        """
        spare = self._spare_keycodes()
        with self._record.exclusive():
            if not self._lent:
                # Another process may have borrowed since the map was read.
                now = xkb.get_map(self._conn).keys
                spare[:] = [code for code in spare if not means_something(now[code])]
            types = self._keymap.borrowable_types()
            depth = next((depth for depth in sorted(types) if depth * len(spare) >= len(keysyms)), 0)
            if not depth:
                raise self._no_room(len(keysyms))
            index, modifiers = types[depth]
            rows: Dict[int, List[int]] = {}
            places: List[Position] = []
            for number, keysym in enumerate(keysyms):
                level, column = divmod(number, len(spare))
                rows.setdefault(spare[column], []).append(keysym)
                places.append(Position(spare[column], 0, level, modifiers[level]))
            # A level that nothing is needed on says what the first one says.
            self._put({code: row + row[:1] * (depth - len(row)) for code, row in rows.items()}, index)
        self._conn.sync()
        return places

    def lend_letters(self, pairs: Sequence[Tuple[int, int]]) -> List[Position]:
        """Put keysyms on a spare keycode each, plain and with Shift, like keys of their own.

        Raises:
            ActionFailed: as for ``lend``.
        """
        spare = self._spare_keycodes()
        types = self._keymap.borrowable_types()
        if len(spare) < len(pairs) or 2 not in types:
            raise self._no_room(len(pairs))
        with self._record.exclusive():
            self._put({code: list(pair) for code, pair in zip(spare, pairs)}, types[2][0])
        self._conn.sync()
        return [Position(code, 0, 0, 0) for code in spare[: len(pairs)]]

    def _put(self, rows: Dict[int, List[int]], kind: int) -> None:
        """Note it, then do it."""
        now = xkb.get_map(self._conn).keys
        for code, row in rows.items():
            self._was.setdefault(code, now[code])
            values = self._lent.setdefault(code, [])
            values += [keysym for keysym in dict.fromkeys(row) if keysym not in values]
        self._write()
        change = {code: xkb.KeySymbols((tuple(row),), (kind, 0, 0, 0), _ONE_GROUP) for code, row in rows.items()}
        _set_symbols(self._conn, change)

    def _no_room(self, wanted: int) -> ActionFailed:
        return nothing_sent(
            f"the keyboard map has {len(self._spare_keycodes())} spare keycodes, too few for the {wanted} characters it"
            " lacks: paste the text instead"
        )

    def give_back(self) -> None:
        """Put everything back. What somebody else changed meanwhile stays as it is."""
        if self._state is None and not self._lent:
            return
        with self._record.exclusive():
            _take_back(self._conn, self._lent, self._was)
            if self._state is not None:
                _put_back_state(self._conn, self._state, self._locks, self._groups)
            self._record.write()
        self._record.forget()
        self._lent, self._was, self._state, self._groups = {}, {}, None, []
        self._conn.sync()

    def _spare_keycodes(self) -> List[int]:
        if self._spare is None:
            down = set(core.query_keymap(self._conn))
            self._spare = [code for code in self._keymap.spare() if code not in down]
        return self._spare

    def _note(self) -> None:
        with self._record.exclusive():
            self._write()

    def _write(self) -> None:
        line: Line = {"codes": {str(code): [values, self._was[code]] for code, values in self._lent.items()}}
        if self._state is not None:
            line.update(state=list(self._state), locks=self._locks, groups=self._groups)
        self._record.write(line)


def restore_borrowed(conn: Connection) -> List[str]:
    """Put back what processes that are gone had changed on the keyboard; says what that was, in words."""
    if conn.extension("XKEYBOARD") is None:
        return []
    xkb.use(conn)
    record = OwnedProperty(conn, PROPERTY)
    done: List[str] = []
    with record.exclusive():
        for line in record.take_dead():
            try:
                lent = {int(code): [int(value) for value in values] for code, (values, _) in line["codes"].items()}
                was = {int(code): _read_symbols(found) for code, (_, found) in line["codes"].items()}
                state = xkb.State(*[int(field) for field in line["state"]]) if "state" in line else None
                locks, groups = int(line.get("locks", 0)), [int(group) for group in line.get("groups", [])]
                taken = _take_back(conn, lent, was)
                if taken:
                    done.append(f"{len(taken)} borrowed keycodes")
                if state is not None and _put_back_state(conn, state, locks, groups):
                    done.append("the locks and group of the keyboard")
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error):
                continue  # not a line of ours
    try:
        conn.sync()
    except RequestFailed:
        return []  # anybody may write that property, and the server refused what it said
    return done


def _read_symbols(value: Any) -> xkb.KeySymbols:
    """A key as it was written in the property.

    Raises:
        ValueError: it is none.
    """
    groups, types, info = value
    rows = tuple(tuple(int(keysym) & 0xFFFFFFFF for keysym in row) for row in groups)
    kinds = tuple(int(kind) & 0xFF for kind in types)
    if len(kinds) != 4 or len({len(row) for row in rows}) > 1:
        raise ValueError("not a key's symbols")
    return xkb.KeySymbols(rows, kinds, int(info) & 0xFF)


def _take_back(conn: Connection, lent: Dict[int, List[int]], was: Dict[int, xkb.KeySymbols]) -> List[int]:
    """Give those keycodes that still hold nothing but values of ours what they had."""
    if not lent:
        return []
    now = xkb.get_map(conn).keys
    ours = []
    for code, values in lent.items():
        held = {keysym for row in now[code].groups for keysym in row if keysym} if code in now else set()
        if held and held <= set(values):
            ours.append(code)
    _set_symbols(conn, {code: was[code] for code in ours})
    return ours


def _put_back_state(conn: Connection, found: xkb.State, locks: int, groups: List[int]) -> bool:
    """Lock and latch again what was, unless somebody has changed the locks or the group since."""
    now = xkb.get_state(conn)
    if now.locked_modifiers != locks or now.locked_group not in groups:
        return False
    xkb.latch_lock_state(
        conn,
        affect_locks=ALL_MODIFIERS,
        locks=found.locked_modifiers,
        lock_group=True,
        group=found.locked_group,
        affect_latches=found.latched_modifiers,
        latches=found.latched_modifiers,
        latch_group=bool(found.latched_group),
        group_latch=found.latched_group & 0xFFFF,
    )
    return True


def _set_symbols(conn: Connection, change: Dict[int, xkb.KeySymbols]) -> None:
    """Change those keys in one request; the keys between them are sent as they are. While the server is grabbed."""
    if change:
        now = xkb.get_map(conn).keys
        first, last = min(change), max(change)
        xkb.set_symbols(conn, first, [change.get(code, now[code]) for code in range(first, last + 1)])
