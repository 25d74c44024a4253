"""How long a device has been idle (X Synchronization Extension Protocol, System Counters)."""

from __future__ import annotations

import struct
from typing import Dict

from .connection import Connection

_PER_DEVICE = "DEVICEIDLETIME "


def device_idle_times(conn: Connection) -> Dict[int, float]:
    """Seconds since each input device's last event, by its number; empty where the server does not count them."""
    extension = conn.extension("SYNC")
    if extension is None:
        return {}
    conn.call(extension.major, 0, struct.pack("=BB2x", 3, 1))
    data = conn.call(extension.major, 1)
    (count,) = struct.unpack_from("=I", data, 8)
    at, asked = 32, {}
    for _ in range(count):
        counter, length = struct.unpack_from("=I8xH", data, at)
        name = data[at + 14 : at + 14 + length].decode("latin-1")
        at += 14 + length
        at += -at % 4
        if name.startswith(_PER_DEVICE) and name[len(_PER_DEVICE) :].isdigit():
            asked[int(name[len(_PER_DEVICE) :])] = conn.ask(extension.major, 5, struct.pack("=I", counter))
    times = {}
    for device, sequence in asked.items():
        high, low = struct.unpack_from("=iI", conn.reply(sequence), 8)
        times[device] = ((high << 32) + low) / 1000
    return times
