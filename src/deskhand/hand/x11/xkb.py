"""Groups, locks, latches and the map of the keyboard (X Keyboard Extension Protocol)."""

from __future__ import annotations

import struct
from typing import Dict, List, NamedTuple, Tuple

from ..errors import Unsupported
from .connection import Connection, Extension

#: XkbUseCoreKbd: the device the core protocol calls the keyboard.
CORE_KEYBOARD = 0x100
#: Boolean controls (section 10, Keyboard Controls).
SLOW_KEYS, BOUNCE_KEYS = 2, 4


class State(NamedTuple):
    """XkbGetState: modifiers as bits (Shift 1, Lock 2, Control 4, Mod1 8 ... Mod5 128), groups from 0 on."""

    modifiers: int
    base_modifiers: int
    latched_modifiers: int
    locked_modifiers: int
    group: int
    locked_group: int
    base_group: int
    latched_group: int


class KeyType(NamedTuple):
    """How modifiers choose a level of a key: ``levels`` maps exact modifier masks to levels, any other to level 0.

    Modifiers outside ``mask`` make no difference; ``width`` is the number of levels.
    """

    mask: int
    levels: Dict[int, int]
    width: int


class KeySymbols(NamedTuple):
    """One keycode's keysyms, ``groups[group][level]`` (0: NoSymbol), and the index of each of four groups' key type.

    ``info`` is its GroupInfo: the number of groups, and what a group that the key does not have means.
    """

    groups: Tuple[Tuple[int, ...], ...]
    types: Tuple[int, ...]
    info: int

    def effective_group(self, group: int) -> int:
        """The group this key is read in while the keyboard's is ``group`` (section 2.2.1)."""
        count = len(self.groups)
        if group < count or not count:
            return group if count else 0
        if self.info & 0x80:
            redirect = self.info >> 4 & 3
            return redirect if redirect < count else 0
        return count - 1 if self.info & 0x40 else group % count


class Map(NamedTuple):
    """XkbGetMap: key types, keysyms by keycode, and the modifier mask of each keycode that has one."""

    types: List[KeyType]
    keys: Dict[int, KeySymbols]
    modifiers: Dict[int, int]


class Now(NamedTuple):
    """The core keyboard: the reply to XkbGetMap (``get_map_reply``), the state, the boolean controls that are on."""

    map_reply: bytes
    state: State
    controls: int


def use(conn: Connection) -> Extension:
    """XkbUseExtension: must be sent before any other request of XKB."""
    extension = _extension(conn)
    conn.reply(_ask_use(conn, extension))
    return extension


def get_now(conn: Connection) -> Now:
    """XkbUseExtension and all of ``Now`` in one round trip."""
    extension = _extension(conn)
    asked = [ask(conn, extension) for ask in (_ask_use, _ask_map, _ask_state, _ask_controls)]
    _, found, state, controls = [conn.reply(sequence) for sequence in asked]
    return Now(_without_number(found), _parse_state(state), _parse_controls(controls))


def get_state(conn: Connection) -> State:
    return _parse_state(conn.reply(_ask_state(conn, _extension(conn))))


def enabled_controls(conn: Connection) -> int:
    """XkbGetControls: the boolean controls that are on, as bits."""
    return _parse_controls(conn.reply(_ask_controls(conn, _extension(conn))))


def _extension(conn: Connection) -> Extension:
    extension = conn.extension("XKEYBOARD")
    if extension is None:
        raise Unsupported(f"display {conn.name} has no XKEYBOARD extension, so exact text can not be typed")
    return extension


def _ask_use(conn: Connection, extension: Extension) -> int:
    return conn.ask(extension.major, 0, struct.pack("=HH", 1, 0))


def _ask_state(conn: Connection, extension: Extension) -> int:
    return conn.ask(extension.major, 4, struct.pack("=H2x", CORE_KEYBOARD))


def _ask_controls(conn: Connection, extension: Extension) -> int:
    return conn.ask(extension.major, 6, struct.pack("=H2x", CORE_KEYBOARD))


def _ask_map(conn: Connection, extension: Extension) -> int:
    key_types, key_symbols, modifier_map = 1, 2, 4
    full = key_types | key_symbols | modifier_map
    return conn.ask(extension.major, 8, struct.pack("=HHH2x", CORE_KEYBOARD, full, 0) + bytes(16))


def _parse_controls(data: bytes) -> int:
    (controls,) = struct.unpack_from("=I", data, 56)
    return int(controls)


def _without_number(data: bytes) -> bytes:
    return data[:2] + bytes(2) + data[4:]


def _parse_state(data: bytes) -> State:
    mods, base, latched, locked, group, locked_group, base_group, latched_group = struct.unpack_from(
        "=BBBBBBhh", data, 8
    )
    return State(mods, base, latched, locked, group, locked_group, base_group, latched_group)


def latch_lock_state(
    conn: Connection,
    *,
    affect_locks: int = 0,
    locks: int = 0,
    lock_group: bool = False,
    group: int = 0,
    affect_latches: int = 0,
    latches: int = 0,
    latch_group: bool = False,
    group_latch: int = 0,
) -> None:
    """XkbLatchLockState: set the locked and latched modifiers and groups that ``affect_`` and the flags name."""
    extension = _extension(conn)
    body = struct.pack(
        "=HBBBBBBxBH",
        CORE_KEYBOARD,
        affect_locks,
        locks,
        int(lock_group),
        group,
        affect_latches,
        latches,
        int(latch_group),
        group_latch,
    )
    conn.send(extension.major, 5, body)


def get_map(conn: Connection) -> Map:
    """XkbGetMap of the core keyboard: all key types, keysyms and the modifier map."""
    return parse_map(get_map_reply(conn))


def get_map_reply(conn: Connection) -> bytes:
    """The reply to XkbGetMap as it came, without its sequence number: the same bytes are the same map."""
    return _without_number(conn.reply(_ask_map(conn, _extension(conn))))


def parse_map(data: bytes) -> Map:
    """What a reply to XkbGetMap says."""
    first_key, type_count, key_count, modifier_count = data[17], data[15], data[20], data[33]
    at = 40
    types: List[KeyType] = []
    for _ in range(type_count):
        mask, _mods, _virtual, width, entries, preserve = struct.unpack_from("=BBHBBB", data, at)
        at += 8
        levels: Dict[int, int] = {}
        for _ in range(entries):
            active, entry_mask, level = struct.unpack_from("=BBB", data, at)
            if active:
                levels[entry_mask] = level
            at += 8
        at += 4 * entries if preserve else 0
        types.append(KeyType(mask, levels, width))
    keys: Dict[int, KeySymbols] = {}
    for keycode in range(first_key, first_key + key_count):
        kinds = data[at : at + 4]
        info, width, count = struct.unpack_from("=BBH", data, at + 4)
        symbols = struct.unpack_from(f"={count}I", data, at + 8)
        at += 8 + 4 * count
        groups = min(info & 0x0F, 4, count // width if width else 0)
        rows = tuple(tuple(symbols[width * group : width * (group + 1)]) for group in range(groups))
        keys[keycode] = KeySymbols(rows, tuple(kinds), info)
    modifiers = {data[at + 2 * i]: data[at + 2 * i + 1] for i in range(modifier_count)}
    return Map(types, keys, modifiers)


def set_symbols(conn: Connection, first: int, rows: List[KeySymbols]) -> None:
    """XkbSetMap of the keysyms of ``first`` and the keycodes after it, on the core keyboard and its devices.

    One request, so every client reads the map again once, however many keys change; a ChangeKeyboardMapping for each
    of 18 keys stopped openbox for 0.9 s.
    """
    extension = _extension(conn)
    total = sum(len(group) for row in rows for group in row.groups)
    head = struct.pack(
        "=HHHBBBBBBH",
        CORE_KEYBOARD,
        2,  # the keysyms
        0,
        conn.setup.min_keycode,
        conn.setup.max_keycode,
        0,
        0,
        first,
        len(rows),
        total,
    )
    body = [head, bytes(18)]
    for row in rows:
        width = len(row.groups[0]) if row.groups else 0
        symbols = [keysym for group in row.groups for keysym in group]
        body.append(struct.pack("=4BBBH", *row.types, row.info, width, len(symbols)))
        body.append(struct.pack(f"={len(symbols)}I", *symbols))
    conn.send(extension.major, 9, b"".join(body))
