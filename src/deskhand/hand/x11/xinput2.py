"""Input devices, and their events wherever these go (X Input Device Extension Protocol, version 2).

Raw events tell which slave device something came from, also while another client has a grab (since version 2.1).
"""

from __future__ import annotations

import struct
from typing import List, NamedTuple, Optional, Sequence

from .connection import Connection
from .events import Event

NAME = "XInputExtension"
ALL_DEVICES, ALL_MASTER_DEVICES = 0, 1
#: XIQueryDevice, the uses of a device.
SLAVE_POINTER, SLAVE_KEYBOARD = 3, 4
HIERARCHY_CHANGED = 11
RAW_KEY_PRESS, RAW_KEY_RELEASE, RAW_BUTTON_PRESS, RAW_BUTTON_RELEASE, RAW_MOTION = 13, 14, 15, 16, 17
RAW_TOUCH_BEGIN, RAW_TOUCH_UPDATE, RAW_TOUCH_END = 22, 23, 24
_GENERIC_EVENT = 35
#: A property that the server gives to the slave devices that XTEST's events come from.
_XTEST_DEVICE = "XTEST Device"


class Device(NamedTuple):
    """``use`` is one of XIQueryDevice's: 1 and 2 masters, 3 and 4 their slaves, 5 floating."""

    id: int
    use: int
    name: str


class Raw(NamedTuple):
    """A raw event, or a change of the devices.

    ``source`` is a slave device, ``detail`` a keycode, a button or a touch, ``time`` the server's, in milliseconds.
    """

    kind: int
    source: int
    detail: int
    time: int


def available(conn: Connection) -> bool:
    """Whether the server has version 2.2; must be asked before anything else here (it negotiates the version)."""
    extension = conn.extension(NAME)
    if extension is None:
        return False
    data = conn.call(extension.major, 47, struct.pack("=HH", 2, 2))
    major, minor = struct.unpack_from("=HH", data, 8)
    return bool((major, minor) >= (2, 2))


def select_events(conn: Connection, window: int, device: int, kinds: Sequence[int]) -> None:
    """XISelectEvents: tell of these kinds of events of a device (or of ``ALL_MASTER_DEVICES``)."""
    extension = conn.extension(NAME)
    assert extension is not None
    mask = sum(1 << kind for kind in kinds)
    conn.send(extension.major, 46, struct.pack("=IH2xHHI", window, 1, device, 1, mask))


def query_devices(conn: Connection) -> List[Device]:
    """XIQueryDevice: all of them."""
    extension = conn.extension(NAME)
    assert extension is not None
    data = conn.call(extension.major, 48, struct.pack("=H2x", ALL_DEVICES))
    (count,) = struct.unpack_from("=H", data, 8)
    at, devices = 32, []
    for _ in range(count):
        number, use, _attached, classes, length, _enabled = struct.unpack_from("=HHHHHB", data, at)
        at += 12
        name = data[at : at + length].decode("utf-8", "replace")
        devices.append(Device(number, use, name))
        at += length + -length % 4
        for _ in range(classes):
            at += 4 * int(struct.unpack_from("=H", data, at + 2)[0])
    return devices


def is_xtest(conn: Connection, device: int) -> bool:
    """Whether a slave device is one that XTEST's events come from: programs press it, and no person.

    Raises:
        RequestFailed: there is no such device any more.
    """
    extension = conn.extension(NAME)
    assert extension is not None
    request = struct.pack("=HBxIIII", device, 0, conn.atom(_XTEST_DEVICE), 0, 0, 1)
    data = conn.call(extension.major, 59, request)  # XIGetProperty
    (items,) = struct.unpack_from("=I", data, 16)
    return bool(items and data[32])


def raw_event(conn: Connection, event: Event) -> Optional[Raw]:
    """The event, when it is one of this extension's raw ones or HierarchyChanged."""
    extension = conn.extension(NAME)
    if event.data[0] & 0x7F != _GENERIC_EVENT or extension is None or event.data[1] != extension.major:
        return None
    (kind,) = struct.unpack_from("=H", event.data, 8)
    if kind == HIERARCHY_CHANGED:
        return Raw(kind, 0, 0, 0)
    time, detail, source = struct.unpack_from("=IIH", event.data, 12)
    return Raw(kind, source, detail, time)
