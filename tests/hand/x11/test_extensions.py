"""Requests of the extensions, compared with xcffib's and python-xlib's on a live server."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from tests.xservers import put_pixels, xcb, xlib, xvfb_with

from deskhand.hand.errors import RequestFailed, Unsupported
from deskhand.hand.x11 import Connection, Event, core, damage, randr, shm, xfixes, xkb, xres, xtest
from deskhand.testing import XServer


@pytest.fixture
def connection(display: XServer) -> Iterator[Connection]:
    with Connection.open(display.display) as opened:
        yield opened


@pytest.fixture
def theirs(display: XServer) -> Iterator[Any]:
    with xcb(display.display) as opened:
        yield opened


def test_extensions_by_name(connection: Connection, theirs: Any) -> None:
    for name in ("XTEST", "MIT-SHM", "DAMAGE", "XFIXES", "RANDR", "XKEYBOARD", "X-Resource", "BIG-REQUESTS"):
        found = connection.extension(name)
        other = theirs.core.QueryExtension(len(name), name).reply()
        assert found is not None
        assert found == (name, other.major_opcode, other.first_event, other.first_error)
    assert connection.extension("NO-SUCH-THING") is None
    assert connection.extension("NO-SUCH-THING") is None


def test_without_an_extension() -> None:
    options = [
        part
        for name in ("XTEST", "MIT-SHM", "DAMAGE", "XFIXES", "RANDR", "X-Resource")
        for part in ("-extension", name)
    ]
    with xvfb_with(*options) as name, Connection.open(name) as connection:
        missing = [one for one in ("XTEST", "MIT-SHM", "DAMAGE", "RANDR") if connection.extension(one) is None]
        if "XTEST" in missing:
            with pytest.raises(Unsupported, match="no XTEST extension"):
                xtest.fake_input(connection, xtest.MOTION, 0, 1, 1)
        if "MIT-SHM" in missing:
            assert shm.query_version(connection) is None
        if "DAMAGE" in missing:
            assert not damage.available(connection)
        if "RANDR" in missing:
            assert randr.get_monitors(connection) == []
        if connection.extension("X-Resource") is None:
            assert xres.client_pid(connection, connection.root) is None
        assert missing


def test_xtest_moves_and_presses(display: XServer, connection: Connection, theirs: Any) -> None:
    xtest.fake_input(connection, xtest.MOTION, 0, 321, 123)
    connection.sync()
    other = theirs.core.QueryPointer(connection.root).reply()
    assert (other.root_x, other.root_y) == (321, 123)
    assert core.query_pointer(connection)[2:4] == (321, 123)
    for kind, down in ((xtest.BUTTON_PRESS, True), (xtest.BUTTON_RELEASE, False)):
        xtest.fake_input(connection, kind, 3, delay_ms=2)
        connection.sync()
        assert bool(theirs.core.QueryPointer(connection.root).reply().mask & 1 << 10) is down
        assert bool(core.query_pointer(connection).mask & 1 << 10) is down
    for kind, keys in ((xtest.KEY_PRESS, [38]), (xtest.KEY_RELEASE, [])):
        xtest.fake_input(connection, kind, 38)
        connection.sync()
        assert core.query_keymap(connection) == keys
        with xlib(display.display) as also:
            assert [code for code in range(256) if also.query_keymap()[code // 8] >> code % 8 & 1] == keys
    xtest.fake_input(connection, xtest.KEY_PRESS, 3)
    with pytest.raises(RequestFailed, match="XTEST FakeInput: BadValue"):
        connection.sync()


def test_shm_equals_get_image(connection: Connection, theirs: Any) -> None:
    put_pixels(connection, connection.root, 0, 0, 1280, 800, 0xA0B0C0)
    put_pixels(connection, connection.root, 100, 90, 301, 77, 0x00FF7F)
    version = shm.query_version(connection)
    assert version is not None
    assert version >= (1, 2)
    fd = os.memfd_create("test")
    size = 4 * 1280 * 800
    os.ftruncate(fd, size + 4096)
    segment = shm.attach_fd(connection, fd)
    for x, y, width, height, offset in ((0, 0, 1280, 800, 0), (99, 89, 33, 11, 4096), (1279, 799, 1, 1, 0)):
        depth, visual, length = shm.get_image(connection, connection.root, x, y, width, height, segment, offset)
        image = core.get_image(connection, connection.root, x, y, width, height)
        other = theirs.core.GetImage(2, connection.root, x, y, width, height, 0xFFFFFFFF).reply()
        assert (depth, visual) == (image.depth, image.visual)
        assert os.pread(fd, length, offset) == image.data == other.data.buf()
    shm.detach(connection, segment)
    with pytest.raises(RequestFailed, match="BadSeg"):
        shm.get_image(connection, connection.root, 0, 0, 1, 1, segment)
    os.close(fd)


def test_shm_refuses_what_it_can_not_map(connection: Connection) -> None:
    shm.query_version(connection)
    reader, writer = os.pipe()
    with pytest.raises(RequestFailed, match="MIT-SHM AttachFd"):
        shm.attach_fd(connection, reader)
    os.close(reader)
    os.close(writer)
    connection.sync()


def test_damage_tells_of_drawing(display: XServer, connection: Connection) -> None:
    assert damage.available(connection)
    watch = damage.create(connection, connection.root, damage.BOUNDING_BOX)
    damage.subtract(connection, watch)
    connection.sync()
    seen: list[Event] = []
    with connection.subscribe(seen.append), Connection.open(display.display) as other:
        put_pixels(other, other.root, 10, 20, 30, 40, 0xFF0000)
        connection.sync()
        assert [seen[0][name] for name in ("damage", "x", "y", "width", "height")] == [watch, 10, 20, 30, 40]
        assert seen[0].name == "DAMAGE.Notify"
        put_pixels(other, other.root, 12, 22, 3, 4, 0x00FF00)  # inside the box: not told again
        connection.sync()
        assert len(seen) == 1
        damage.subtract(connection, watch)
        connection.sync()
        put_pixels(other, other.root, 12, 22, 3, 4, 0x0000FF)
        connection.sync()
        assert [seen[-1][name] for name in ("x", "y", "width", "height")] == [12, 22, 3, 4]
        damage.destroy(connection, watch)
        connection.sync()
        count = len(seen)
        put_pixels(other, other.root, 10, 20, 30, 40, 0)
        connection.sync()
        assert len(seen) == count
    damage.create(connection, 0x4242, damage.NON_EMPTY, ignore=True)
    connection.sync()
    damage.create(connection, 0x4242, damage.NON_EMPTY)
    with pytest.raises(RequestFailed, match="DAMAGE Create: BadDrawable"):
        connection.sync()


def test_the_cursors_picture(connection: Connection, theirs: Any) -> None:
    import xcffib.xfixes

    assert xfixes.available(connection)
    other = theirs(xcffib.xfixes.key)
    other.QueryVersion(5, 0).reply()
    theirs.core.WarpPointerChecked(0, connection.root, 0, 0, 0, 0, 50, 60).check()
    image, there = xfixes.get_cursor_image(connection), other.GetCursorImage().reply()
    assert image[:7] == (there.x, there.y, there.width, there.height, there.xhot, there.yhot, there.cursor_serial)
    assert list(struct.unpack(f"={image.width * image.height}I", image.argb)) == list(there.cursor_image)
    assert (image.x, image.y) == (50, 60)
    named = other.GetCursorImageAndName().reply()
    assert image.name == named.name.to_string()


def test_new_selection_owners_are_told(display: XServer, connection: Connection) -> None:
    assert xfixes.available(connection)
    selection = connection.atom("CLIPBOARD")
    xfixes.select_selection_input(connection, connection.root, selection)
    connection.sync()
    seen: list[Event] = []
    with connection.subscribe(seen.append):
        with Connection.open(display.display) as other:
            owner = core.create_window(other)
            core.set_selection_owner(other, owner, selection, 0)
            other.sync()
            assert connection.wait(lambda: seen, 10)
            assert (seen[0].name, seen[0]["owner"], seen[0]["subtype"]) == ("XFIXES.SelectionNotify", owner, 0)
        assert connection.wait(lambda: len(seen) > 1, 10)
        assert seen[1]["subtype"] in (1, 2)  # the owner's window, or its client, ended


def test_monitors(display: XServer, connection: Connection, theirs: Any) -> None:
    import xcffib.randr

    other = theirs(xcffib.randr.key)
    other.QueryVersion(1, 5).reply()

    def expected() -> list[tuple[Any, ...]]:
        reply = other.GetMonitors(connection.root, True).reply()
        return [
            (theirs.core.GetAtomName(m.name).reply().name.to_string(), bool(m.primary), m.x, m.y, m.width, m.height)
            for m in reply.monitors
        ]

    assert randr.get_monitors(connection) == expected()
    for name, x in (("left", 0), ("right", 640)):
        atom = connection.atom(name)
        body = struct.pack("=IIBBHhhHHII", connection.root, atom, x == 0, 0, 0, x, 0, 640, 800, 100, 100)
        extension = connection.extension("RANDR")
        assert extension is not None
        connection.send(extension.major, 43, body)  # RRSetMonitor
    connection.sync()
    monitors = randr.get_monitors(connection)
    assert monitors == expected()
    assert {("left", 0, 640), ("right", 640, 640)} <= {(m.name, m.x, m.width) for m in monitors}


def test_keyboard_state(connection: Connection, theirs: Any) -> None:
    xcffib_xkb = pytest.importorskip("xcffib.xkb")

    other = theirs(xcffib_xkb.key)
    other.UseExtension(1, 0).reply()
    xkb.use(connection)

    def compare() -> xkb.State:
        ours = xkb.get_state(connection)
        there = other.GetState(xkb.CORE_KEYBOARD).reply()
        assert tuple(ours) == (
            *(there.mods, there.baseMods, there.latchedMods, there.lockedMods),
            *(there.group, there.lockedGroup, there.baseGroup, there.latchedGroup),
        )
        return ours

    assert compare() == (0, 0, 0, 0, 0, 0, 0, 0)
    xkb.latch_lock_state(connection, affect_locks=2, locks=2, lock_group=True, group=1)
    connection.sync()
    assert compare().locked_modifiers == 2
    xkb.latch_lock_state(connection, affect_latches=1, latches=1)
    connection.sync()
    assert compare().latched_modifiers == 1
    xkb.latch_lock_state(connection, affect_locks=255, affect_latches=255, lock_group=True, group=0)
    connection.sync()
    assert compare() == (0, 0, 0, 0, 0, 0, 0, 0)
    xtest.fake_input(connection, xtest.KEY_PRESS, 50)
    connection.sync()
    assert compare().base_modifiers == 1
    xtest.fake_input(connection, xtest.KEY_RELEASE, 50)
    connection.sync()
    assert compare().modifiers == 0


def test_keyboard_map_agrees_with_the_core_map(connection: Connection) -> None:
    xkb.use(connection)
    found = xkb.get_map(connection)
    core_map = core.get_keyboard_mapping(connection, 8, 248)
    checked = 0
    for keycode, key in found.keys.items():
        if key.groups and key.groups[0]:
            assert core_map[keycode - 8][0] == key.groups[0][0]
            checked += 1
        for group, kind in zip(key.groups, key.types):  # noqa: B905 (Python 3.9)
            levels = found.types[kind].levels.values()
            assert all(0 <= level < max(1, len(group)) for level in levels)
    assert checked > 100
    from_core = {code: 1 << row for row, codes in enumerate(core.get_modifier_mapping(connection)) for code in codes}
    assert found.modifiers == from_core


def test_which_process_a_window_is_of(display: XServer, connection: Connection) -> None:
    with Connection.open(display.display) as other:
        window = core.create_window(other)
        other.sync()
        assert xres.client_pid(connection, window) == os.getpid()
    assert xres.client_pid(connection, connection.root) in (None, display.pid)
    import subprocess

    process = subprocess.Popen(["xev", "-name", "xev"], env=display.env, stdout=subprocess.DEVNULL)
    try:
        core.select_input(connection, connection.root, core.SUBSTRUCTURE_NOTIFY)
        children = core.query_tree(connection, connection.root)[2]
        seen: list[int] = list(children)
        with connection.subscribe(lambda e: seen.append(e["window"]) if e.name == "CreateNotify" else None):
            assert connection.wait(lambda: seen, 10)
        assert xres.client_pid(connection, seen[0]) == process.pid
    finally:
        process.terminate()
        process.wait()
