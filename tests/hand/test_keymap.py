"""The live keyboard map, compared with what xcb's and Xlib's clients see on real layouts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from deskhand.hand import key_names
from deskhand.hand.keymap import Keymap
from deskhand.hand.x11 import Connection, core, xkb
from deskhand.testing import XServer

LAYOUTS = ["us", "de", "fr", "ru", "gr", "us,ru", "us,de,ru", "jp", "il"]


@pytest.fixture
def conn(display: XServer) -> Iterator[Connection]:
    with Connection.open(display.display) as connection:
        yield connection


def set_layout(server: XServer, layout: str) -> None:
    subprocess.run(["setxkbmap", "-display", server.display, "-layout", layout], check=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_position_gives_its_keysym(display: XServer, conn: Connection, layout: str) -> None:
    set_layout(display, layout)
    keymap = Keymap.read(conn)
    numbers = {number for symbols in keymap._raw.keys.values() for row in symbols.groups for number in row if number}
    found = 0
    for number in numbers:
        place = keymap.find(number)
        if place is not None:
            found += 1
            given = keymap.keysym_at(place.keycode, place.group, place.modifiers)
            assert given in key_names.equivalents(number), (key_names.name_of(number), place)
    assert found > 150


@pytest.mark.parametrize("layout", ["us", "de", "fr", "ru", "gr"])
def test_agrees_with_the_core_map(display: XServer, conn: Connection, layout: str) -> None:
    set_layout(display, layout)
    keymap = Keymap.read(conn)
    for keycode, row in enumerate(core.get_keyboard_mapping(conn, 8, 248), 8):
        assert keymap.keysym_at(keycode, 0, 0) == row[0]
        assert (keycode in keymap) == any(row)


def test_agrees_with_xcffib(display: XServer, conn: Connection) -> None:
    xcffib = pytest.importorskip("xcffib")
    pytest.importorskip("xcffib.xproto")
    theirs = xcffib.connect(display.display)
    try:
        reply = theirs.core.GetModifierMapping().reply()
        each, codes = reply.keycodes_per_modifier, list(reply.keycodes)
        masks = {code: 1 << row for row in range(8) for code in codes[each * row : each * (row + 1)] if code}
        keymap = Keymap.read(conn)
        assert {code: keymap.modifier_of(code) for code in masks} == masks
    finally:
        theirs.disconnect()


@pytest.mark.parametrize(
    ("layout", "character", "keycode", "modifiers"),
    [
        ("us", "a", 38, 0),
        ("us", "A", 38, 1),
        ("us", "+", 21, 1),
        ("us", "(", 18, 1),  # on the main block, although keycode 187 says it without Shift
        ("de", "@", 24, 128),
        ("de", "€", 26, 128),
        ("fr", "1", 10, 1),
        ("fr", "é", 11, 0),
        ("ru", "ж", 47, 0),
        ("ru", "Ж", 47, 1),
    ],
)
def test_where_characters_are(
    display: XServer, conn: Connection, layout: str, character: str, keycode: int, modifiers: int
) -> None:
    set_layout(display, layout)
    place = Keymap.read(conn).find(key_names.keysym_of(character))
    assert place is not None
    assert (place.keycode, place.group, place.modifiers) == (keycode, 0, modifiers)


def test_the_group_that_is_active_is_preferred(display: XServer, conn: Connection) -> None:
    set_layout(display, "us,de")
    keymap = Keymap.read(conn)
    z = key_names.keysym_of("z")
    assert [(place.keycode, place.group) for group in (0, 1) if (place := keymap.find(z, group))] == [(52, 0), (29, 1)]


def test_keypad_digits_need_num_lock(conn: Connection) -> None:
    keymap = Keymap.read(conn)
    place = keymap.find(key_names.keysym("KP_7"))
    assert place is not None
    assert place.modifiers & keymap.num_lock
    assert keymap.shift_keys(place.modifiers) == []


def test_what_is_not_on_the_map(conn: Connection) -> None:
    keymap = Keymap.read(conn)
    assert keymap.find(key_names.keysym_of("é")) is None
    assert keymap.find(key_names.keysym_of("😀")) is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_spare_keycodes_mean_nothing(display: XServer, conn: Connection, layout: str) -> None:
    set_layout(display, layout)
    keymap = Keymap.read(conn)
    spare = keymap.spare()
    assert len(spare) >= 8
    assert 8 not in spare
    assert not {code for row in core.get_modifier_mapping(conn) for code in row}.intersection(spare)
    for code in spare:
        assert not any(core.get_keyboard_mapping(conn, code, 1)[0])


def test_a_changed_map_is_another_map(display: XServer, conn: Connection) -> None:
    before = Keymap.read(conn)
    assert before == Keymap.read(conn)
    core.change_keyboard_mapping(conn, before.spare()[0], [(0xE9,)])
    assert before != Keymap.read(conn)


def test_state_of_locks_and_groups_is_read_as_it_is_set(display: XServer, conn: Connection) -> None:
    set_layout(display, "us,ru")
    xkb.use(conn)
    xkb.latch_lock_state(conn, affect_locks=255, locks=2, lock_group=True, group=1)
    state = xkb.get_state(conn)
    assert (state.locked_modifiers, state.locked_group, state.group) == (2, 1, 1)
