"""Requests of the core protocol: their replies and effects, as other clients' libraries see them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from tests.xservers import put_pixels, xcb, xlib

from deskhand.hand.errors import RequestFailed
from deskhand.hand.x11 import Connection, Event, core
from deskhand.testing import XServer


@pytest.fixture
def connection(display: XServer) -> Iterator[Connection]:
    with Connection.open(display.display) as opened:
        yield opened


@pytest.fixture
def theirs(display: XServer) -> Iterator[Any]:
    with xcb(display.display) as opened:
        yield opened


def window_of(conn: Connection, **more: Any) -> int:
    window = core.create_window(conn, 30, 40, 200, 100, **more)
    conn.sync()
    return window


def test_geometry_and_attributes(connection: Connection, theirs: Any) -> None:
    window = window_of(connection, event_mask=core.PROPERTY_CHANGE)
    geometry, other = core.get_geometry(connection, window), theirs.core.GetGeometry(window).reply()
    assert geometry == (other.root, other.depth, other.x, other.y, other.width, other.height, other.border_width)
    assert geometry[2:] == (30, 40, 200, 100, 0)
    for state in (0, core.MAP_STATE_VIEWABLE):
        attributes = core.get_window_attributes(connection, window)
        there = theirs.core.GetWindowAttributes(window).reply()
        assert attributes[:4] == (there._class, bool(there.override_redirect), there.map_state, there.visual)
        assert attributes.map_state == state
        assert attributes.your_event_mask == attributes.all_event_masks == core.PROPERTY_CHANGE
        assert there.all_event_masks == core.PROPERTY_CHANGE
        core.map_window(connection, window)
        connection.sync()
    core.unmap_window(connection, window)
    assert core.get_window_attributes(connection, window).map_state == 0
    hidden = window_of(connection, input_only=True, override_redirect=False)
    attributes = core.get_window_attributes(connection, hidden)
    assert (attributes.window_class, attributes.override_redirect) == (2, False)


def test_tree_and_coordinates(connection: Connection, theirs: Any) -> None:
    windows = [window_of(connection) for _ in range(300)]
    root, parent, children = core.query_tree(connection, connection.root)
    other = theirs.core.QueryTree(connection.root).reply()
    assert (root, parent, children) == (other.root, other.parent, list(other.children))
    assert children[-300:] == windows
    assert core.query_tree(connection, windows[0]) == (connection.root, connection.root, [])
    core.map_window(connection, windows[-1])
    assert core.translate_coordinates(connection, windows[-1], connection.root, -40, 7) == (0, -10, 47)
    assert core.translate_coordinates(connection, windows[-1], connection.root, 5, 7)[0] == windows[-1]
    core.destroy_window(connection, windows[-1])
    with pytest.raises(RequestFailed, match="QueryTree: BadWindow"):
        core.query_tree(connection, windows[-1])
    core.destroy_window(connection, windows[-1])  # one that is gone is no error
    core.unmap_window(connection, windows[-1])
    core.configure_window(connection, windows[-1], x=3)
    connection.sync()


def test_configure(connection: Connection, theirs: Any) -> None:
    window, above = window_of(connection), window_of(connection)
    core.configure_window(connection, window, x=-7, y=-8, width=9, height=10, border_width=2)
    core.configure_window(connection, window, sibling=above, stack_mode=0)
    connection.sync()
    other = theirs.core.GetGeometry(window).reply()
    assert (other.x, other.y, other.width, other.height, other.border_width) == (-7, -8, 9, 10, 2)
    assert list(theirs.core.QueryTree(connection.root).reply().children)[-2:] == [above, window]


def test_pointer_and_focus(connection: Connection, theirs: Any) -> None:
    theirs.core.WarpPointerChecked(0, connection.root, 0, 0, 0, 0, 123, 45).check()
    at, other = core.query_pointer(connection), theirs.core.QueryPointer(connection.root).reply()
    assert at == (other.root, other.child, 123, 45, other.mask)
    window = window_of(connection)
    core.map_window(connection, window)
    core.set_input_focus(connection, window)
    assert core.get_input_focus(connection) == window == theirs.core.GetInputFocus().reply().focus
    core.set_input_focus(connection, core.FOCUS_NONE)
    assert core.get_input_focus(connection) == 0 == theirs.core.GetInputFocus().reply().focus
    core.set_input_focus(connection, 0x12345)  # a window that is gone is no error
    connection.sync()


@pytest.mark.parametrize(("bits", "code"), [(8, "B"), (16, "H"), (32, "I")])
def test_properties(connection: Connection, theirs: Any, bits: int, code: str) -> None:
    window, name = window_of(connection), connection.atom("DESKHAND_TEST")
    values = [0, 1, 200, (1 << bits) - 1]
    packed = struct.pack(f"={len(values)}{code}", *values)
    assert core.get_property(connection, window, name) == (0, 0, b"")
    assert core.get_property(connection, window, name).cardinals() == []
    core.change_property(connection, window, name, core.ATOM_CARDINAL, bits, packed)
    core.change_property(connection, window, name, core.ATOM_CARDINAL, bits, packed, append=True)
    connection.sync()
    other = theirs.core.GetProperty(False, window, name, 0, 0, 1000).reply()
    assert (other.type, other.format, other.value.buf()) == (core.ATOM_CARDINAL, bits, packed * 2)
    ours = core.get_property(connection, window, name)
    assert ours == (core.ATOM_CARDINAL, bits, packed * 2)
    assert ours.cardinals() == values * 2
    assert core.get_property(connection, window, name, core.ATOM_STRING).value == b""  # of another type
    assert core.get_property(connection, window, name, delete=True).cardinals() == values * 2
    assert core.get_property(connection, window, name).type == 0
    core.change_property(connection, window, name, core.ATOM_CARDINAL, bits, packed)
    core.delete_property(connection, window, name)
    assert core.get_property(connection, window, name).type == 0


def test_a_property_longer_than_one_reply(connection: Connection, theirs: Any) -> None:
    name, value = connection.atom("LONG"), os.urandom(1_000_003)
    for start in range(0, len(value), 100_000):
        theirs.core.ChangePropertyChecked(
            2,
            connection.root,
            name,
            core.ATOM_STRING,
            8,
            len(value[start : start + 100_000]),
            value[start : start + 100_000],
        ).check()
    assert core.get_property(connection, connection.root, name).value == value
    assert core.get_property(connection, connection.root, name, delete=True).value == value
    assert core.get_property(connection, connection.root, name).type == 0


def test_atoms(connection: Connection, theirs: Any) -> None:
    for name in ("PRIMARY", "_NET_WM_PING", "DESKHAND_NEW_ATOM", "x" * 300):
        assert connection.atom(name) == theirs.core.InternAtom(False, len(name), name).reply().atom
    made = theirs.core.InternAtom(False, 7, "THEIR_1").reply().atom
    assert connection.atom_name(made) == "THEIR_1"
    with pytest.raises(RequestFailed, match="GetAtomName: BadAtom"):
        connection.atom_name(0x7FFFFF)


def test_selections(connection: Connection, theirs: Any) -> None:
    owner, selection = window_of(connection), connection.atom("CLIPBOARD")
    assert core.get_selection_owner(connection, selection) == 0
    core.set_selection_owner(connection, owner, selection, core.server_time(connection))
    assert (
        core.get_selection_owner(connection, selection)
        == owner
        == theirs.core.GetSelectionOwner(selection).reply().owner
    )
    asked: list[Event] = []
    with connection.subscribe(asked.append):
        target, prop = connection.atom("UTF8_STRING"), connection.atom("HERE")
        core.convert_selection(connection, owner, selection, target, prop, 0)
        connection.sync()
    (request,) = [event for event in asked if event.name == "SelectionRequest"]
    assert [request[name] for name in ("owner", "requestor", "selection", "target", "property")] == [
        *(owner, owner, selection, target, prop)
    ]


def test_client_messages_reach_those_who_selected(display: XServer, connection: Connection) -> None:
    core.select_input(connection, connection.root, core.SUBSTRUCTURE_NOTIFY)
    connection.sync()
    seen: list[Event] = []
    with connection.subscribe(seen.append), Connection.open(display.display) as sender:
        kind = sender.atom("HELLO")
        core.send_client_message(sender, sender.root, core.SUBSTRUCTURE_NOTIFY, 0x42, kind, [1, -1, 3])
        core.send_client_message(sender, sender.root, core.STRUCTURE_NOTIFY, 0x43, kind, [])
        core.send_client_message(sender, 0x77777, core.STRUCTURE_NOTIFY, 0x44, kind, [])  # nobody there: no error
        sender.sync()
        connection.sync()
    (event,) = seen
    assert (event.name, event.synthetic, event["window"], event["type"]) == ("ClientMessage", True, 0x42, kind)
    assert [event[f"data{index}"] for index in range(5)] == [1, 0xFFFFFFFF, 3, 0, 0]


def test_events_are_decoded(display: XServer, connection: Connection) -> None:
    core.select_input(connection, connection.root, core.SUBSTRUCTURE_NOTIFY)
    connection.sync()
    seen: list[Event] = []
    with connection.subscribe(seen.append), Connection.open(display.display) as other:
        window = core.create_window(other, 1, 2, 3, 4)
        core.map_window(other, window)
        core.configure_window(other, window, x=-5)
        core.unmap_window(other, window)
        core.destroy_window(other, window)
        other.sync()
        connection.sync()
    names = ["CreateNotify", "MapNotify", "ConfigureNotify", "UnmapNotify", "DestroyNotify"]
    assert [event.name for event in seen] == names
    assert {event["window"] for event in seen} == {window}
    assert [seen[0][name] for name in ("parent", "x", "y", "width", "height")] == [connection.root, 1, 2, 3, 4]
    assert seen[1]["override_redirect"] == 1
    assert (seen[2]["x"], seen[2]["width"]) == (-5, 3)
    assert seen[0].get("no such field") == 0
    with pytest.raises(KeyError):
        seen[0]["no such field"]
    assert not seen[0].synthetic
    assert "window=" in repr(seen[0])


def test_keyboard_maps(display: XServer, connection: Connection, theirs: Any) -> None:
    first, count = connection.setup.min_keycode, 248
    rows = core.get_keyboard_mapping(connection, first, count)
    other = theirs.core.GetKeyboardMapping(first, count).reply()
    each = other.keysyms_per_keycode
    flat = list(other.keysyms)
    assert rows == [tuple(flat[each * index : each * (index + 1)]) for index in range(count)]
    with xlib(display.display) as also:
        for keycode in (10, 38, 65):
            assert rows[keycode - first][0] == also.keycode_to_keysym(keycode, 0)
        assert core.get_modifier_mapping(connection) == [
            [code for code in codes if code] for codes in also.get_modifier_mapping()
        ]
        assert core.get_pointer_mapping(connection) == list(also.get_pointer_mapping())
        assert core.auto_repeats(connection) == bool(also.get_keyboard_control().global_auto_repeat)
    core.change_keyboard_mapping(connection, 93, [(0x1002014, 0x41), (0x61, 0x62)])
    connection.sync()
    changed = theirs.core.GetKeyboardMapping(93, 2).reply()
    assert list(changed.keysyms)[:2] == [0x1002014, 0x41]
    assert list(changed.keysyms)[changed.keysyms_per_keycode :][:2] == [0x61, 0x62]
    assert core.query_keymap(connection) == []


def test_image(connection: Connection, theirs: Any) -> None:
    put_pixels(connection, connection.root, 10, 20, 30, 40, 0x123456)
    image = core.get_image(connection, connection.root, 5, 15, 50, 60)
    other = theirs.core.GetImage(2, connection.root, 5, 15, 50, 60, 0xFFFFFFFF).reply()
    assert (image.depth, image.visual, image.data) == (other.depth, other.visual, other.data.buf())
    assert image.data[4 * (50 * 5 + 5) :][:3] == b"\x56\x34\x12"
    with pytest.raises(RequestFailed, match="GetImage: BadMatch"):
        core.get_image(connection, connection.root, 1270, 0, 20, 20)


def test_server_time_goes_on(connection: Connection) -> None:
    first = core.server_time(connection)
    assert first > 0
    assert core.server_time(connection) >= first
    children = core.query_tree(connection, connection.root)[2]
    core.server_time(connection)
    assert core.query_tree(connection, connection.root)[2] == children


def test_kill_client(display: XServer, connection: Connection) -> None:
    with Connection.open(display.display) as victim:
        window = core.create_window(victim)
        victim.sync()
        core.kill_client(connection, window)
        connection.sync()
        with pytest.raises(RequestFailed):
            core.get_geometry(connection, window)
    core.kill_client(connection, window)
    connection.sync()


def test_a_grab_holds_others_back_until_it_is_given_back(display: XServer, connection: Connection) -> None:
    with Connection.open(display.display) as other:
        core.grab_server(connection)
        connection.sync()
        asked = other.ask(14, 0, struct.pack("=I", other.root))
        other.flush()
        for _ in range(20):
            connection.sync()
        other.read_pending()
        assert not other.wait(lambda: False, 0.01)
        core.ungrab_server(connection)
        connection.flush()
        assert other.reply(asked)[1] == 24
