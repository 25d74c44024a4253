"""Devices, raw events and idle times, compared with the ``xinput`` program on a live server."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator

import pytest

from deskhand.hand.errors import RequestFailed
from deskhand.hand.x11 import Connection, core, sync, xinput2, xtest
from deskhand.testing import XServer


@pytest.fixture
def conn(display: XServer) -> Iterator[Connection]:
    with Connection.open(display.display) as opened:
        assert xinput2.available(opened)
        yield opened


def test_devices(display: XServer, conn: Connection) -> None:
    if shutil.which("xinput") is None:
        pytest.skip("xinput is not installed")
    subprocess.run(["xinput", "create-master", "Zweite Maus"], env=display.env, check=True)
    found = xinput2.query_devices(conn)
    told = subprocess.run(["xinput", "list", "--id-only"], env=display.env, check=True, capture_output=True, text=True)
    assert {device.id for device in found} == {int(line.strip("∼~ ")) for line in told.stdout.split()}
    of_programs = {device.name for device in found if device.use in (3, 4) and xinput2.is_xtest(conn, device.id)}
    assert of_programs == {
        f"{master} XTEST {kind}" for master in ("Virtual core", "Zweite Maus") for kind in ("pointer", "keyboard")
    }
    assert len(found) == 10


def test_a_device_that_is_not_there(conn: Connection) -> None:
    with pytest.raises(RequestFailed):
        xinput2.is_xtest(conn, 99)


def test_raw_events_come_also_while_another_client_has_the_keyboard(display: XServer, conn: Connection) -> None:
    events: list[xinput2.Raw] = []
    conn.subscribe(lambda event: events.extend(filter(None, [xinput2.raw_event(conn, event)])))
    kinds = (xinput2.RAW_KEY_PRESS, xinput2.RAW_KEY_RELEASE, xinput2.RAW_BUTTON_PRESS, xinput2.RAW_MOTION)
    xinput2.select_events(conn, conn.root, xinput2.ALL_MASTER_DEVICES, kinds)
    conn.sync()
    names = {device.id: device.name for device in xinput2.query_devices(conn)}
    with Connection.open(display.display) as other:
        window = core.create_window(other, 0, 0, 10, 10)
        core.map_window(other, window)
        other.sync()
        assert other.call(31, 0, struct.pack("=IIBB2x", window, 0, 1, 1))[1] == 0  # GrabKeyboard
        for kind, detail in ((2, 38), (3, 38), (4, 1), (5, 1)):
            xtest.fake_input(other, kind, detail)
        xtest.fake_input(other, xtest.MOTION, 0, 30, 40)
        other.sync()
        assert conn.wait(lambda: len(events) >= 4, 10)
    assert [(event.kind, event.detail, names[event.source]) for event in events] == [
        (xinput2.RAW_KEY_PRESS, 38, "Virtual core XTEST keyboard"),
        (xinput2.RAW_KEY_RELEASE, 38, "Virtual core XTEST keyboard"),
        (xinput2.RAW_BUTTON_PRESS, 1, "Virtual core XTEST pointer"),
        (xinput2.RAW_MOTION, 0, "Virtual core XTEST pointer"),
    ]


def test_a_change_of_the_devices_is_told(display: XServer, conn: Connection) -> None:
    if shutil.which("xinput") is None:
        pytest.skip("xinput is not installed")
    events: list[xinput2.Raw] = []
    conn.subscribe(lambda event: events.extend(filter(None, [xinput2.raw_event(conn, event)])))
    xinput2.select_events(conn, conn.root, xinput2.ALL_DEVICES, [xinput2.HIERARCHY_CHANGED])
    conn.sync()
    subprocess.run(["xinput", "create-master", "another"], env=display.env, check=True)
    assert conn.wait(lambda: events, 10)
    assert events[0].kind == xinput2.HIERARCHY_CHANGED


def test_idle_times(conn: Connection) -> None:
    devices = xinput2.query_devices(conn)
    keyboards = {device.id for device in devices if device.use == xinput2.SLAVE_KEYBOARD}
    (ours,) = {device for device in keyboards if xinput2.is_xtest(conn, device)}
    (physical,) = keyboards - {ours}
    before = sync.device_idle_times(conn)
    assert set(before) == {device.id for device in devices}
    conn.wait(lambda: False, 0.3)
    xtest.fake_input(conn, xtest.KEY_PRESS, 38)
    xtest.fake_input(conn, xtest.KEY_RELEASE, 38)
    conn.sync()
    after = sync.device_idle_times(conn)
    assert after[physical] >= before[physical] + 0.25
    assert after[ours] < after[physical]
